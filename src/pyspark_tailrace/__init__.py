"""Entry point for Spark, which finds data sources by package name: `format("tailrace")` needs no registration."""

from tailrace.spark.source.data_source import LogDataSource as DefaultSource

__all__ = ["DefaultSource"]
