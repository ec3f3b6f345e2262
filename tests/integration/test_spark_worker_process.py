"""Connections that a Python process of Spark keeps between tasks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

import pytest

import tailrace
from tailrace.client.admin import add_partitions
from tailrace.client.cluster.cluster_client import ClusterClient
from tailrace.client.settings import ClientSettings
from tailrace.spark.worker_process import close_idle, reused_cluster

SETTINGS = ClientSettings()


@pytest.fixture
def broker() -> Iterator[tailrace.Broker]:
    with tailrace.Broker() as running:
        running.create_topic("orders", partitions=1)
        yield running
    close_idle()


def test_a_process_connects_to_a_cluster_once(broker: tailrace.Broker) -> None:
    with reused_cluster(broker.bootstrap, SETTINGS) as first:
        first.cluster.topic("orders")
    with reused_cluster(broker.bootstrap, SETTINGS) as second:
        assert second is first
        assert second.cluster.is_connected


def test_topics_are_not_kept_between_tasks(broker: tailrace.Broker) -> None:
    with reused_cluster(broker.bootstrap, SETTINGS) as first:
        assert len(first.cluster.topic("orders").partitions) == 1
        with ClusterClient(broker.bootstrap) as other:
            add_partitions(other, "orders", 3)
    with reused_cluster(broker.bootstrap, SETTINGS) as again:
        assert len(again.cluster.topic("orders").partitions) == 3


def test_parallel_users_have_separate_connections(broker: tailrace.Broker) -> None:
    with reused_cluster(broker.bootstrap, SETTINGS) as outer, reused_cluster(broker.bootstrap, SETTINGS) as inner:
        for one in (outer, inner):
            one.cluster.topic("orders")
        assert outer is not inner
    with reused_cluster(broker.bootstrap, SETTINGS) as kept:
        assert kept is inner
    assert not outer.cluster.is_connected


def test_a_connection_is_closed_after_an_error(broker: tailrace.Broker) -> None:
    with suppress(KeyError), reused_cluster(broker.bootstrap, SETTINGS) as failed:
        failed.cluster.topic("orders")
        raise KeyError
    assert not failed.cluster.is_connected
    with reused_cluster(broker.bootstrap, SETTINGS) as other:
        assert other is not failed


def test_a_kept_connection_is_replaced_after_a_restart_of_the_broker(broker: tailrace.Broker) -> None:
    with reused_cluster(broker.bootstrap, SETTINGS) as before:
        before.cluster.topic("orders")
    broker.restart()
    with reused_cluster(broker.bootstrap, SETTINGS) as after:
        assert after is not before
        assert len(after.cluster.topic("orders").partitions) == 1
