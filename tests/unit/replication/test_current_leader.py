"""current_leader: as the replica knows it, or else the metadata."""

from __future__ import annotations

from tailrace.model.ids import TopicPartition
from tailrace.replication.current_leader import LeaderNode, current_leader
from tests.simulation.node import Node, broker, registration


def test_the_local_replicas_leader_has_precedence_over_the_metadata() -> None:
    node = Node()
    node.know(broker(2, rack="r2"))
    partition = node.host(state=registration(2, (1, 2), leader_epoch=4))
    node.publish(partition.key, registration(1, (1, 2), leader_epoch=9))
    found = current_leader(partition.key, node.partitions, node.image, "PLAINTEXT")
    assert found == (2, 4, LeaderNode(2, "host2", 9002, "r2"))


def test_the_leader_of_a_partition_elsewhere_comes_from_the_metadata() -> None:
    node = Node()
    node.know(broker(2), broker(3, fenced=True))
    node.publish(TopicPartition("a", 0), registration(2, (2,), leader_epoch=7))
    node.publish(TopicPartition("b", 0), registration(3, (3,), leader_epoch=8))
    node.publish(TopicPartition("c", 0), registration(-1, (3,), leader_epoch=9))

    def reported(topic: str, listener: str = "PLAINTEXT") -> tuple[object, ...]:
        return current_leader(TopicPartition(topic, 0), node.partitions, node.image, listener)

    assert reported("a") == (2, 7, LeaderNode(2, "host2", 9002, None))
    assert reported("a", "SSL") == (2, 7, None)
    assert reported("b") == (3, 8, None)
    assert reported("c") == (-1, 9, None)
    assert reported("d") == (-1, -1, None)
