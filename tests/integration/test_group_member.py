"""Members of a consumer group that the command line joins: they share partitions, and take over after a leave."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import tailrace
from tailrace.client.admin import NewTopic, create_topic
from tailrace.client.cluster.cluster_client import ClusterClient
from tailrace.client.cluster.coordinators import Coordinators
from tailrace.client.groups.group_member import GroupMember
from tailrace.client.groups.group_offsets import committed_offsets
from tailrace.client.settings import ClientSettings
from tailrace.model.ids import TopicPartition


@pytest.fixture
def bootstrap() -> Iterator[str]:
    with tailrace.Broker(config={"group.initial.rebalance.delay.ms": "0"}) as broker:
        with ClusterClient(broker.bootstrap) as cluster:
            create_topic(cluster, NewTopic(name="orders", partitions=3, replication_factor=1))
        yield broker.bootstrap


def test_a_member_gets_all_partitions_and_commits(bootstrap: str) -> None:
    with ClusterClient(bootstrap) as cluster:
        coordinators = Coordinators(cluster)
        with GroupMember(coordinators, "billing", "orders") as member:
            assert member.keep_alive()
            assert member.partitions == [TopicPartition("orders", number) for number in range(3)]
            assert not member.keep_alive()
            assert member.commit({TopicPartition("orders", 1): 7})
        assert committed_offsets(coordinators, "billing")[TopicPartition("orders", 1)].offset == 7


def test_a_member_that_the_group_does_not_know_joins_again(bootstrap: str) -> None:
    with ClusterClient(bootstrap, ClientSettings(total_timeout_ms=20_000)) as cluster:
        coordinators = Coordinators(cluster)
        with GroupMember(coordinators, "billing", "orders") as member:
            assert member.keep_alive()
            member._leave()  # as after a session timeout: the group has forgotten the member
            assert not member.commit({TopicPartition("orders", 0): 1})
            assert member.keep_alive()
            assert len(member.partitions) == 3
            assert member.commit({TopicPartition("orders", 0): 1})
