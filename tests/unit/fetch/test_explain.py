"""explain_fetch: the steps of one live fetch, as data."""

from __future__ import annotations

import json
from typing import Any

from tailrace.fetch.explain import FetchWalk, as_plain, explain_fetch
from tailrace.fetch.fetch import Fetch, Reason
from tailrace.log.watermarks import Isolation
from tailrace.model.errors import ErrorCode
from tailrace.model.ids import TopicPartition
from tests.simulation.node import Node, ask_for, broker, registration, response_of, want


class Explained:
    """Explains every fetch when it is ready."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.walks: list[FetchWalk] = []

    def fetch(self, *wants: Any, version: int = 18, **fields: Any) -> Fetch:
        def ready(fetch: Fetch, now_ms: int) -> None:
            self.walks.append(explain_fetch(fetch))
            json.dumps(as_plain(self.walks[-1]))
            response_of(fetch, now_ms)

        ask = ask_for(wants, version=version, **fields)
        return self.node.fetches.start(ask, version, self.node.now_ms, ready)

    @property
    def walk(self) -> FetchWalk:
        return self.walks[-1]


def test_the_walk_has_the_wait_time_and_the_key_that_woke_the_fetch() -> None:
    node = Node()
    partition = node.lead("orders")
    explained = Explained(node)
    explained.fetch(want(partition, 0), max_wait_ms=500, min_bytes=1)
    node.now_ms += 120
    node.append(partition, b"a")
    walk = explained.walk
    assert (walk.waited_ms, walk.woken_by, walk.reason) == (120, "orders-0", Reason.ENOUGH_NOW)
    assert (walk.fetcher, walk.version, walk.max_wait_ms) == ("consumer", 18, 500)
    explained.fetch(want(partition, 0))
    assert (explained.walk.waited_ms, explained.walk.woken_by, explained.walk.reason) == (None, None, Reason.NO_WAIT)


def test_the_walk_of_a_read_has_bound_probes_and_slice() -> None:
    node = Node()
    partition = node.lead(config={"index.interval.bytes": "100"})
    for _ in range(20):
        node.append(partition, b"x" * 50)
    explained = Explained(node)
    explained.fetch(want(partition, 13, max_bytes=300), isolation_level=1)
    (one,) = explained.walk.partitions
    assert explained.walk.isolation is Isolation.READ_COMMITTED
    assert (one.role, one.leader_epoch, one.fetch_offset, one.is_in_response) == ("leader", 0, 13, True)
    assert one.read is not None
    assert one.read.bounds.bound == 20
    assert one.read.walks[0].search.probes
    assert one.read.slice is not None
    assert one.read.slice.size == one.budget.taken == explained.walk.size
    plain = as_plain(explained.walk)
    assert plain["isolation"] == "read_committed"
    assert plain["partitions"][0]["read"]["slice"]["position"] == one.read.slice.position
    assert "result" not in plain["partitions"][0]["read"]


def test_the_walk_has_the_byte_budget_of_each_partition() -> None:
    node = Node()
    first, second = node.lead("topic", 0), node.lead("topic", 1)
    for partition in (first, second):
        node.append(partition, b"x" * 50)
    size = first.log.size
    explained = Explained(node)
    explained.fetch(want(first, 0), want(second, 0, max_bytes=10), max_bytes=size + 50)
    one, two = (walk.budget for walk in explained.walk.partitions)
    assert (one.left, one.at_least_one, one.taken) == (size + 50, True, size)
    assert (two.left, two.share, two.at_least_one, two.taken) == (50, 10, False, 0)


def test_the_walk_counts_the_skipped_idle_partitions_of_a_session() -> None:
    node = Node()
    partitions = [node.lead("topic", n) for n in range(4)]
    explained = Explained(node)
    explained.fetch(*(want(one, 0) for one in partitions), epoch=0)
    assert explained.walk.session.kind == "full"
    explained.fetch(session=1, epoch=1)
    assert not any(one.is_in_response for one in explained.walk.partitions)
    node.append(partitions[2], b"a")
    explained.fetch(session=1, epoch=2)
    session = explained.walk.session
    assert (session.kind, session.id, session.epoch, session.partitions, session.idle) == ("incremental", 1, 3, 4, 3)
    assert [(one.partition, one.is_in_response) for one in explained.walk.partitions] == [(2, True)]
    explained.fetch(session=1, epoch=7)
    assert explained.walk.session.error == ErrorCode.INVALID_FETCH_SESSION_EPOCH


def test_the_walk_has_refusals_errors_and_diverging_epochs() -> None:
    node = Node()
    node.know(broker(2))
    partition = node.host("topic", 0, state=registration(1, leader_epoch=0))
    node.append(partition, b"a")
    node.apply(partition, registration(1, leader_epoch=3, partition_epoch=1))
    out_of_range = node.host("topic", 1)
    explained = Explained(node)
    explained.fetch(
        want(partition, 1, last_epoch=2),
        want(out_of_range, 9),
        want(TopicPartition("nowhere", 0), 0),
        version=12,
    )
    walk = explained.walk
    assert [(one.topic, one.error) for one in walk.refused] == [("nowhere", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)]
    diverging, bad = walk.partitions
    assert (diverging.diverging_epoch, diverging.read) == ((0, 1), None)
    assert (bad.error, bad.read) == (ErrorCode.OFFSET_OUT_OF_RANGE, None)
    assert as_plain(walk)["partitions"][1]["error"] == "OFFSET_OUT_OF_RANGE"


def test_the_walk_has_aborted_transactions() -> None:
    node = Node()
    partition = node.lead()
    node.append(partition, b"a", producer_id=7, sequence=0, transactional=True)
    node.end_transaction(partition, 7, commit=False)
    explained = Explained(node)
    explained.fetch(want(partition, 0), isolation_level=1)
    assert explained.walk.partitions[0].aborted == [(7, 0)]


def test_explaining_a_fetch_does_not_change_its_response() -> None:
    node = Node()
    partition = node.lead()
    node.append(partition, b"a")
    explained = Explained(node)
    explained.fetch(want(partition, 0), epoch=0)
    session = node.sessions.get(1)
    assert session is not None
    assert len(node.sessions) == 1
    explained.fetch(session=1, epoch=1)
    assert explained.walk.partitions[0].is_in_response
    assert session.epoch == 2
