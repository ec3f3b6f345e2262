"""Tailrace: Apache Kafka's log and Fetch path as a Python program, with Spark as its data engine."""

from tailrace.exports import __getattr__ as __getattr__

__version__ = "0.1.0"
