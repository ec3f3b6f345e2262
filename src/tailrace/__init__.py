"""Tailrace: Apache Kafka's log and Fetch path as a Python program, with Spark as its data engine."""

__version__ = "0.1.0"
