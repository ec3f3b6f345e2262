"""What a Python process of Spark's keeps between tasks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

import pytest

import tailrace
from tailrace.client.admin import add_partitions
from tailrace.client.cluster.cluster import ClusterClient
from tailrace.client.settings import ClientSettings
from tailrace.spark.worker_process import close_idle, kept_cluster

SETTINGS = ClientSettings()


@pytest.fixture
def broker() -> Iterator[tailrace.Broker]:
    with tailrace.Broker() as running:
        running.create_topic("orders", partitions=1)
        yield running
    close_idle()


def test_a_cluster_is_connected_to_once(broker: tailrace.Broker) -> None:
    with kept_cluster(broker.bootstrap, SETTINGS) as first:
        first.cluster.topic("orders")
    with kept_cluster(broker.bootstrap, SETTINGS) as second:
        assert second is first
        assert second.cluster.is_connected


def test_topics_are_asked_for_again(broker: tailrace.Broker) -> None:
    with kept_cluster(broker.bootstrap, SETTINGS) as first:
        assert len(first.cluster.topic("orders").partitions) == 1
        with ClusterClient(broker.bootstrap) as other:
            add_partitions(other, "orders", 3)
    with kept_cluster(broker.bootstrap, SETTINGS) as again:
        assert len(again.cluster.topic("orders").partitions) == 3


def test_two_at_a_time_have_a_connection_each(broker: tailrace.Broker) -> None:
    with kept_cluster(broker.bootstrap, SETTINGS) as outer, kept_cluster(broker.bootstrap, SETTINGS) as inner:
        for one in (outer, inner):
            one.cluster.topic("orders")
        assert outer is not inner
    with kept_cluster(broker.bootstrap, SETTINGS) as kept:
        assert kept is inner
    assert not outer.cluster.is_connected


def test_what_failed_is_not_used_again(broker: tailrace.Broker) -> None:
    with suppress(KeyError), kept_cluster(broker.bootstrap, SETTINGS) as failed:
        failed.cluster.topic("orders")
        raise KeyError
    assert not failed.cluster.is_connected
    with kept_cluster(broker.bootstrap, SETTINGS) as other:
        assert other is not failed


def test_a_broker_that_was_started_again_is_connected_to_anew(broker: tailrace.Broker) -> None:
    with kept_cluster(broker.bootstrap, SETTINGS) as before:
        before.cluster.topic("orders")
    broker.restart()
    with kept_cluster(broker.bootstrap, SETTINGS) as after:
        assert after is not before
        assert len(after.cluster.topic("orders").partitions) == 1
