"""Where Spark looks for data sources by itself: with this on the path `format("tailrace")` needs no registration."""

from tailrace.spark.source.data_source import LogDataSource as DefaultSource

__all__ = ["DefaultSource"]
