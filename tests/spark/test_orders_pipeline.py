"""The example's pipeline inside Spark: its results are right, also when it is stopped between batches and goes on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import tailrace
from examples.orders.checker import check
from examples.orders.events import ORDERS, PAYMENTS
from examples.orders.feeder import create_topics, feed
from tailrace.client.cluster import ClusterClient


def run_to_the_end(pipeline: Any, name: str) -> None:
    """On a busy machine Spark may not wait long enough for its Python: then the query is started again."""
    for _ in range(3):
        query = pipeline.start(name, availableNow=True)
        try:
            query.awaitTermination(300)
            assert not query.isActive
            return
        except Exception as error:
            if "failed to connect back" not in str(error):
                raise
        finally:
            query.stop()
    raise AssertionError(f"{name} was never started")


@pytest.mark.slow
def test_every_result_is_right_and_there_once(spark: Any, tmp_path: Path) -> None:
    from examples.orders.pipeline import REVENUE, SETTLED, Pipeline

    with tailrace.Broker(tmp_path / "data") as broker, ClusterClient(broker.bootstrap) as cluster:
        create_topics(cluster, ORDERS, PAYMENTS, REVENUE)
        for part in range(2):
            feed(cluster, seed=7, count=3_000)
            # Many small batches: watermarks move while there is more to read.
            pipeline = Pipeline(spark, broker.bootstrap, tmp_path, max_offsets=2_000)
            for name in (SETTLED, REVENUE):
                run_to_the_end(pipeline, name)
            settled, revenue = check(spark, broker.bootstrap, tmp_path)
            assert settled.is_right, settled
            assert revenue.is_right, revenue
            assert settled.results > 1_000 * (part + 1)
            assert revenue.results >= 5 * (part + 1)
