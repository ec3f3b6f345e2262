"""F13: a throttled follower gets an empty response, a throttled client a throttle time. No record is lost."""

from __future__ import annotations

from tailrace.model.errors import ErrorCode
from tailrace.model.ids import TopicPartition
from tailrace.protocol.flat.fetch import ask_of, message_of
from tests.simulation.node import Node, ask_for, broker, bytes_of, registration, request_for, response_of, want


class Quota:
    """A replication quota for these partitions."""

    def __init__(self, *throttled: TopicPartition, exceeded: bool = False) -> None:
        self.throttled = set(throttled)
        self.exceeded = exceeded
        self.recorded: list[int] = []

    def is_throttled(self, partition: TopicPartition, replica_id: int) -> bool:
        return partition in self.throttled

    def is_exceeded(self, now_ms: int) -> bool:
        return self.exceeded

    def record(self, size: int, now_ms: int) -> None:
        self.recorded.append(size)


FIRST, SECOND = TopicPartition("topic", 0), TopicPartition("topic", 1)


def throttled_node(quota: Quota, isr: tuple[int, ...] = (1,)) -> Node:
    node = Node(quota=quota)
    node.know(broker(2))
    for n in (0, 1):
        partition = node.host("topic", n, state=registration(1, (1, 2), isr))
        node.append(partition, b"x" * 50)
    return node


def sizes(node: Node, replica: int = 2, **fields):  # type: ignore[no-untyped-def]
    epoch = 102 if replica == 2 else -1
    asked = node.fetch([want(FIRST, 0), want(SECOND, 0)], replica=replica, replica_epoch=epoch, **fields)
    return [len(bytes_of(one)) for one in asked.partitions.values()]


def test_f13_a_follower_over_the_replication_quota_gets_no_records() -> None:
    node = throttled_node(Quota(FIRST, exceeded=True))
    first, second = sizes(node)
    assert (first, second > 0) == (0, True)


def test_f13_records_of_throttled_partitions_count_against_the_quota() -> None:
    quota = Quota(FIRST)
    node = throttled_node(quota)
    first, second = sizes(node)
    assert first == second > 0
    assert quota.recorded == [first]  # only the bytes of throttled partitions


def test_f13_a_follower_in_sync_is_never_throttled() -> None:
    node = throttled_node(Quota(FIRST, SECOND, exceeded=True), isr=(1, 2))
    assert all(sizes(node))


def test_f13_consumers_are_not_limited_by_the_replication_quota() -> None:
    quota = Quota(FIRST, SECOND, exceeded=True)
    assert all(sizes(throttled_node(quota), replica=-1))
    assert quota.recorded == []


def test_f13_a_throttled_partition_does_not_wake_a_follower() -> None:
    quota = Quota(FIRST, SECOND, exceeded=True)
    node = throttled_node(quota)
    asked = node.fetch([want(FIRST, 0)], replica=2, replica_epoch=102, max_wait_ms=500)
    assert asked.is_waiting
    first = node.partitions.find(FIRST)
    node.append(first, b"y")
    first.log.roll(node.now_ms)
    node.append(first, b"z")
    assert asked.is_waiting
    quota.exceeded = False
    node.check(first)
    assert bytes_of(asked.only)


def test_f13_a_throttled_client_gets_a_throttle_time_and_no_partitions() -> None:
    node = throttled_node(Quota())
    for version in (1, 4, 7, 12, 18):
        seen = []
        request = request_for([want(FIRST, 0)], version=version)
        node.fetches.start(ask_of(request, version), version, node.now_ms, lambda fetch, now_ms: seen.append(fetch))  # noqa: B023
        response = message_of(seen[0].throttled_answer(), 1_234)
        response.encode(version)
        assert (response.throttle_time_ms, response.error_code, response.responses) == (1_234, ErrorCode.NONE, [])


def test_f13_client_quotas_count_the_size_of_the_response() -> None:
    node = throttled_node(Quota(), isr=(1,))
    for version in (4, 7, 11, 12, 13, 18):
        seen = []
        request = request_for([want(FIRST, 0), want(TopicPartition("nowhere", 0), 0)], version=version)
        node.fetches.start(ask_of(request, version), version, node.now_ms, lambda fetch, now_ms: seen.append(fetch))  # noqa: B023
        size = seen[0].response_size()
        parts: list[bytes] = []
        response_of(seen[0], node.now_ms).write(parts, version)
        assert size == 4 + sum(map(len, parts))


def test_f13_the_size_of_an_incremental_response_counts_only_its_partitions() -> None:
    node = throttled_node(Quota(), isr=(1,))
    node.fetch([want(FIRST, 1), want(SECOND, 0)], epoch=0)
    for epoch in (1, 2):
        seen = []
        node.fetches.start(
            ask_for([], session=1, epoch=epoch),
            18,
            node.now_ms,
            lambda fetch, now_ms: seen.append(fetch),  # noqa: B023
        )
        size = seen[0].response_size()
        assert seen[0].response_size() == size  # a second call returns the same size
        parts: list[bytes] = []
        response_of(seen[0], node.now_ms).write(parts, 18)
        assert size == 4 + sum(map(len, parts))
        assert size > 100
