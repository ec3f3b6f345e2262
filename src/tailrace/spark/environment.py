"""Prepares the environment of the Spark that this process starts: its Java and its Python.

    prepare_spark()           # before the first SparkSession
    session = SparkSession.builder…

Spark looks for data sources in a Python process of its own: the program in PYSPARK_PYTHON, or `python3` on the PATH. If
a virtual environment is not activated, that is another Python without Tailrace, and `format("tailrace")` fails with
DATA_SOURCE_NOT_FOUND.
"""

from __future__ import annotations

import os
import sys
from collections.abc import MutableMapping

from tailrace.java import Java
from tailrace.spark.java import use_java


def prepare_spark(environment: MutableMapping[str, str] | None = None) -> Java:
    """Set JAVA_HOME to a Java for Spark, and PYSPARK_PYTHON to this interpreter unless it is set.

    Raise JavaMissing if there is no Java 17 or newer.
    """
    environment = os.environ if environment is None else environment
    found = use_java(environment)
    environment.setdefault("PYSPARK_PYTHON", sys.executable)
    return found
