"""F1, F4: the kinds of fetcher, and how far each may read."""

from __future__ import annotations

import pytest

from tailrace.fetch.isolation import describe_replica, is_consumer, is_follower, isolation_of
from tailrace.log.watermarks import Isolation
from tailrace.model.errors import ErrorCode, KafkaError
from tests.simulation.node import Node, broker, registration, want


@pytest.mark.parametrize(
    ("replica_id", "follower", "consumer", "name"),
    [
        (0, True, False, "follower 0"),
        (7, True, False, "follower 7"),
        (-1, False, True, "consumer"),
        (-2, False, True, "debugging consumer"),
        (-3, False, False, "future local replica"),
        (-9, False, True, "consumer with replica id -9"),
    ],
)
def test_f1_a_fetch_is_routed_by_replica_id(replica_id: int, follower: bool, consumer: bool, name: str) -> None:
    assert is_follower(replica_id) == follower
    assert is_consumer(replica_id) == consumer
    assert describe_replica(replica_id) == name


def test_f4_the_isolation_level_selects_the_upper_bound() -> None:
    for level in (0, 1, 5):
        assert isolation_of(3, level) is Isolation.LOG_END
        assert isolation_of(-3, level) is Isolation.LOG_END
    for consumer in (-1, -2):
        assert isolation_of(consumer, 0) is Isolation.READ_UNCOMMITTED
        assert isolation_of(consumer, 1) is Isolation.READ_COMMITTED


@pytest.mark.parametrize("level", [-1, 2, 100])
def test_an_unknown_isolation_level_is_an_error_if_a_partition_is_read(level: int) -> None:
    node = Node()
    partition = node.lead()
    for replica in (-1, -3, 2):
        with pytest.raises(KafkaError, match=r"isolation level .* does not exist") as refused:
            node.fetch([want(partition, 0)], isolation_level=level, replica=replica)
        assert refused.value.code == ErrorCode.UNKNOWN_SERVER_ERROR
        assert node.fetch([], isolation_level=level, replica=replica).response.error_code == ErrorCode.NONE


def test_f4_follower_consumer_and_read_committed_read_up_to_their_bounds() -> None:
    """Log end 4 for a follower, high watermark 3 for a consumer, last stable offset 1 for a read_committed consumer."""
    node = Node()
    node.know(broker(2))
    partition = node.host(state=registration(1, (1, 2)))
    sizes = []
    for n, fields in enumerate(({}, {"producer_id": 7, "sequence": 0, "transactional": True}, {}, {})):
        before = partition.log.size
        node.append(partition, b"value%d" % n, **fields)
        sizes.append(partition.log.size - before)
    partition.log.advance_high_watermark(3)
    answers = [
        node.fetch([want(partition, 0)]).only,
        node.fetch([want(partition, 0)], isolation_level=1).only,
        node.fetch([want(partition, 0)], replica=2, replica_epoch=102).only,
    ]
    assert [len(answer.records) for answer in answers] == [sum(sizes[:3]), sizes[0], sum(sizes)]
    assert [(answer.high_watermark, answer.last_stable_offset) for answer in answers] == [(3, 1)] * 3
    # The debugging consumer and the future local replica, neither of which is a network client.
    assert len(node.fetch([want(partition, 0)], replica=-2).only.records) == sum(sizes[:3])
    assert len(node.fetch([want(partition, 0)], replica=-3).only.records) == sum(sizes)
