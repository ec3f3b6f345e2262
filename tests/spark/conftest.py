"""A Spark session per test process, with Spark's own Kafka connector if its jars are available."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.spark_session import SparkUnavailable, spark_session, stop_session


@pytest.fixture(scope="session")
def spark(request: pytest.FixtureRequest) -> Iterator[Any]:
    wants_connector = any("connector" in getattr(item, "fixturenames", ()) for item in request.session.items)
    try:
        session = spark_session(with_connector=wants_connector)
    except SparkUnavailable as why:
        if os.environ.get("TAILRACE_REQUIRE_SPARK") == "1":
            pytest.fail(f"no Spark: {why}", pytrace=False)
        pytest.skip(f"no Spark: {why}")
    yield session
    stop_session()


@pytest.fixture(scope="session")
def connector(spark: Any) -> Any:
    """Return a session with format("kafka")."""
    if not spark.has_connector:
        pytest.skip(f"no jars of Spark's Kafka connector: {spark.why_no_connector}")
    return spark
