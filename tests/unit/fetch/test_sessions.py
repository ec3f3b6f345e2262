"""F2: fetch sessions: ids and epochs, changed partitions, and eviction from the cache."""

from __future__ import annotations

import pytest

from tailrace.fetch.session import FetchSession, PartitionFetch, next_epoch
from tailrace.fetch.sessions import FetchSessions
from tailrace.model.errors import ErrorCode
from tailrace.model.steps import run_steps
from tailrace.protocol.flat.fetch import ask_of, message_of
from tailrace.waiting.purgatory import Purgatory
from tests.simulation.node import Asked, Consumer, Node, broker, registration, request_for, want
from tests.support.batches import batch


def reported(asked: Asked) -> list[int]:
    return [index for _, index in asked.partitions]


def three(node: Node, records: int = 0):  # type: ignore[no-untyped-def]
    partitions = [node.lead("topic", n) for n in range(3)]
    for partition in partitions:
        for _ in range(records):
            node.append(partition, b"x")
    return partitions


# The kinds of fetch


def test_f2_epoch_minus_one_opens_no_session() -> None:
    node = Node()
    partitions = three(node)
    asked = node.fetch([want(one, 0) for one in partitions], epoch=-1)
    assert (asked.response.session_id, reported(asked)) == (0, [0, 1, 2])
    assert asked.fetch.context.kind == "sessionless"
    assert len(node.sessions) == 0


@pytest.mark.parametrize("version", [4, 6])
def test_f2_versions_before_7_have_no_sessions(version: int) -> None:
    node = Node()
    asked = node.fetch([want(three(node)[0], 0)], epoch=0, version=version)
    assert asked.response.session_id == 0
    assert len(node.sessions) == 0


def test_f2_epoch_zero_opens_a_session_and_returns_all_partitions() -> None:
    node = Node()
    asked = node.fetch([want(one, 0) for one in three(node)], epoch=0)
    assert asked.fetch.context.kind == "full"
    assert (asked.response.session_id, reported(asked)) == (1, [0, 1, 2])
    session = node.sessions.get(1)
    assert session is not None
    assert (session.epoch, len(session), session.uses_topic_ids, session.is_privileged) == (1, 3, True, False)


def test_f2_an_incremental_response_has_only_changed_partitions() -> None:
    node = Node()
    partitions = three(node)
    consumer = Consumer(node, [want(one, 0) for one in partitions])
    consumer.poll()
    asked = consumer.poll()
    assert asked.fetch.context.kind == "incremental"
    assert (asked.response.session_id, reported(asked)) == (1, [])
    node.append(partitions[1], b"a")
    assert reported(consumer.poll()) == [1]
    # The client's offset has not moved, so the records are sent again.
    assert reported(consumer.poll()) == [1]
    consumer.move(partitions[1], 1)
    assert reported(consumer.poll()) == []


def test_f2_an_unknown_session_and_a_wrong_epoch_are_errors_without_partitions() -> None:
    node = Node()
    partitions = three(node)
    consumer = Consumer(node, [want(one, 0) for one in partitions])
    consumer.poll()
    for session, epoch, expected in (
        (99, 1, ErrorCode.FETCH_SESSION_ID_NOT_FOUND),
        (0, 1, ErrorCode.FETCH_SESSION_ID_NOT_FOUND),
        (-5, 3, ErrorCode.FETCH_SESSION_ID_NOT_FOUND),
        (1, 2, ErrorCode.INVALID_FETCH_SESSION_EPOCH),
        (1, -2, ErrorCode.INVALID_FETCH_SESSION_EPOCH),
    ):
        asked = node.fetch([want(partitions[0], 0)], session=session, epoch=epoch, max_wait_ms=500)
        assert asked.fetch.context.kind == "session error"
        response = asked.response
        assert (response.error_code, response.session_id, response.responses) == (expected, 0, [])
    assert consumer.poll().response.error_code == ErrorCode.NONE


def test_f2_the_epoch_grows_with_each_request_and_skips_zero() -> None:
    assert next_epoch(0) == 1
    assert next_epoch(2**31 - 1) == 1
    assert next_epoch(-1) == -1
    node = Node()
    consumer = Consumer(node, [want(three(node)[0], 0)])
    consumer.poll()
    session = node.sessions.get(1)
    assert session is not None
    session.epoch = consumer.epoch = 2**31 - 1
    consumer.poll()
    consumer.epoch = 1
    assert consumer.poll().response.error_code == ErrorCode.NONE


def test_f2_a_session_cannot_change_between_topic_ids_and_names() -> None:
    node = Node()
    partition = three(node)[0]
    for first, second in ((13, 12), (12, 13)):
        consumer = Consumer(node, [want(partition, 0)], version=first)
        consumer.poll()
        consumer.version = second
        assert consumer.poll().response.error_code == ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR
        consumer.version, consumer.epoch = first, 1
        assert consumer.poll().response.error_code == ErrorCode.NONE


@pytest.mark.parametrize("epoch", [0, -1])
def test_f2_a_full_request_closes_the_session_it_names(epoch: int) -> None:
    node = Node()
    partitions = three(node)
    Consumer(node, [want(one, 0) for one in partitions]).poll()
    asked = node.fetch([want(partitions[0], 0)], session=1, epoch=epoch)
    assert node.sessions.get(1) is None
    assert asked.response.session_id == (2 if epoch == 0 else 0)
    node.fetch([want(partitions[0], 0)], session=77, epoch=epoch)  # an unknown session id is accepted here


# The partitions of a session


def test_f2_forgotten_partitions_are_not_in_later_responses() -> None:
    node = Node()
    partitions = three(node)
    for version in (7, 12, 13, 18):
        consumer = Consumer(node, [want(one, 0) for one in partitions], version=version)
        consumer.poll()
        consumer.poll(forget=[partitions[1].key])
        for partition in partitions:
            node.append(partition, b"a")
        assert reported(consumer.poll()) == [0, 2]
        for partition in partitions:
            consumer.move(partition, partition.log.log_end_offset)
        consumer.poll(forget=[partition.key for partition in partitions])


def test_f2_incremental_requests_add_and_change_partitions() -> None:
    node = Node()
    first, second, third = three(node, records=2)
    consumer = Consumer(node, [want(first, 2)])
    consumer.poll()
    consumer.move(second, 2)
    consumer.move(third, 0)
    assert reported(consumer.poll()) == [1, 2]
    consumer.move(third, 2)
    consumer.move(first, 1)
    asked = consumer.poll()
    assert reported(asked) == [0]
    assert asked.only.records


def test_f2_a_session_without_partitions_is_closed() -> None:
    node = Node()
    first, second, _ = three(node)
    consumer = Consumer(node, [want(first, 0)])
    consumer.poll()
    asked = consumer.poll(forget=[first.key])
    assert (asked.response.session_id, asked.response.error_code) == (0, ErrorCode.NONE)
    assert len(node.sessions) == 0
    # If one request adds and forgets the same partition, it is answered without a session.
    consumer = Consumer(node, [want(first, 0)])
    consumer.poll()
    consumer.move(second, 0)
    asked = consumer.poll(forget=[first.key, second.key])
    assert (asked.response.session_id, reported(asked)) == (0, [1])
    assert node.purgatory.statistics().linked_keys == 0


def test_f2_forgetting_an_unknown_partition_succeeds() -> None:
    node = Node()
    first, second, _ = three(node)
    consumer = Consumer(node, [want(first, 0)])
    consumer.poll()
    assert consumer.poll(forget=[second.key]).response.error_code == ErrorCode.NONE


def test_a_partition_named_twice_has_its_first_place_and_its_last_values() -> None:
    node = Node()
    first, second, _ = three(node, records=2)
    asked = node.fetch([want(first, 0), want(second, 0), want(first, 2)])
    assert reported(asked) == [0, 1]
    assert not asked.partitions["topic", 0].records


# The partitions of a response


def test_f2_a_moved_high_watermark_or_log_start_is_a_change() -> None:
    node = Node()
    node.know(broker(2))
    partition = node.host(state=registration(1, (1, 2)))
    node.append(partition, b"a", b"b")
    consumer = Consumer(node, [want(partition, 2)])  # ahead of the high watermark
    consumer.poll()
    assert reported(consumer.poll()) == []
    partition.log.advance_high_watermark(1)
    asked = consumer.poll()
    assert (reported(asked), asked.only.high_watermark, bool(asked.only.records)) == ([0], 1, False)
    assert reported(consumer.poll()) == []
    partition.log.advance_high_watermark(2)
    assert reported(consumer.poll()) == [0]
    partition.delete_records(1, node.now_ms)
    asked = consumer.poll()
    assert (reported(asked), asked.only.log_start_offset) == ([0], 1)
    assert reported(consumer.poll()) == []


def test_f2_an_error_is_in_every_response_and_its_end_in_one() -> None:
    node = Node()
    partition = three(node)[0]
    consumer = Consumer(node, [want(partition, 5)])
    for _ in range(3):
        assert consumer.poll().only.error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    consumer.move(partition, 0)
    assert consumer.poll().only.error_code == ErrorCode.NONE
    assert reported(consumer.poll()) == []


def test_f2_a_diverging_epoch_is_in_every_response() -> None:
    node = Node()
    partition = node.host(state=registration(1, leader_epoch=0))
    node.append(partition, b"a")
    node.apply(partition, registration(1, leader_epoch=3, partition_epoch=1))
    consumer = Consumer(node, [want(partition, 1, last_epoch=2)])
    for _ in range(3):
        assert consumer.poll().only.diverging_epoch.epoch == 0


def test_f2_a_partition_that_returned_records_moves_to_the_end() -> None:
    """With a budget of one batch, the partitions take turns."""
    node = Node()
    partitions = three(node, records=5)
    consumer = Consumer(node, [want(one, 0) for one in partitions], max_bytes=1)
    with_records = []
    offsets = [0, 0, 0]
    for _ in range(7):
        asked = consumer.poll()
        (index,) = [key[1] for key, answer in asked.partitions.items() if answer.records]
        with_records.append(index)
        offsets[index] += 1
        consumer.move(partitions[index], offsets[index])
    # The full fetch does not change the order. Later fetches move partitions to the end.
    assert with_records == [0, 0, 1, 2, 0, 1, 2]


def test_f2_changes_left_out_by_throttling_are_in_the_next_response() -> None:
    node = Node()
    partition = three(node)[0]
    consumer = Consumer(node, [want(partition, 0)])
    consumer.poll()
    node.append(partition, b"a")
    seen = []
    request = request_for([], session=1, epoch=1)
    node.fetches.start(
        ask_of(request, 18),
        18,
        node.now_ms,
        lambda fetch, now_ms: seen.append(message_of(fetch.throttled_answer(), 100)),
    )
    (response,) = seen
    assert (response.throttle_time_ms, response.session_id, response.responses) == (100, 1, [])
    consumer.epoch = 2
    assert reported(consumer.poll()) == [0]


def test_f2_a_new_request_of_a_session_invalidates_the_waiting_one() -> None:
    node = Node()
    partition = three(node)[0]
    consumer = Consumer(node, [want(partition, 0)], max_wait_ms=500)
    consumer.poll(max_wait_ms=0)
    first = consumer.poll()
    second = consumer.poll()
    assert first.is_waiting
    assert second.is_waiting
    node.append(partition, b"a")
    assert first.response.error_code == ErrorCode.INVALID_FETCH_SESSION_EPOCH
    assert (first.response.session_id, reported(first)) == (1, [])
    assert reported(second) == [0]


def test_f2_a_waiting_fetch_of_a_closed_session_is_answered() -> None:
    node = Node()
    partition = three(node)[0]
    consumer = Consumer(node, [want(partition, 0)], max_wait_ms=500)
    consumer.poll(max_wait_ms=0)
    waiting = consumer.poll()
    node.sessions.remove(1)
    node.append(partition, b"a")
    assert waiting.is_waiting  # nothing wakes it any longer
    node.pass_ms(500)
    assert reported(waiting) == [0]
    assert consumer.poll().response.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


# The cache


def sizes(sessions: FetchSessions) -> list[int]:
    return sorted(len(session) for session in sessions._sessions.values())


def open_session(node: Node, partitions: int, *, follower: bool = False) -> int:
    wants = [want(one, 0) for one in list(node.partitions)[:partitions]]
    replica = {"replica": 2, "replica_epoch": 102} if follower else {}
    return int(node.fetch(wants, epoch=0, **replica).response.session_id)


def use(node: Node, session: int) -> None:
    known = node.sessions.get(session)
    assert known is not None
    node.fetch([], session=session, epoch=known.epoch)


def full_node(slots: int = 2) -> Node:
    node = Node(slots=slots, eviction_ms=1_000)
    node.know(broker(2))
    for n in range(5):
        node.host("topic", n, state=registration(1, (1, 2)))
    return node


def test_f2_with_a_full_cache_the_fetch_is_answered_without_a_session() -> None:
    node = full_node()
    assert [open_session(node, n) for n in (2, 2, 2)] == [1, 2, 0]
    assert sizes(node.sessions) == [2, 2]
    assert node.sessions.statistics() == (2, 4, 0)


def test_f2_an_unused_session_is_evicted_for_any_new_one() -> None:
    node = full_node()
    open_session(node, 5)
    node.now_ms += 500
    open_session(node, 5)
    node.now_ms += 500
    assert open_session(node, 1) == 0
    node.now_ms += 1
    assert open_session(node, 1) == 3
    assert node.sessions.get(1) is None
    assert node.sessions.statistics() == (2, 6, 1)


def test_f2_an_older_and_smaller_session_is_evicted_for_a_larger_one() -> None:
    node = full_node()
    small, large = open_session(node, 2), open_session(node, 4)
    node.now_ms += 900
    use(node, small)
    use(node, large)
    assert open_session(node, 5) == 0  # both sessions are too young to be evicted
    node.now_ms += 101
    use(node, small)
    use(node, large)
    assert open_session(node, 1) == 0
    assert open_session(node, 3) == 3
    assert node.sessions.get(small) is None
    assert open_session(node, 3) == 0  # one session is larger, the other too young


def test_f2_a_session_of_equal_size_is_not_evicted() -> None:
    node = full_node()
    first, second = open_session(node, 3), open_session(node, 3)
    node.now_ms += 600
    use(node, first)
    use(node, second)
    node.now_ms += 600
    use(node, first)
    use(node, second)
    assert open_session(node, 3) == 0
    assert open_session(node, 4) != 0
    assert node.sessions.get(first) is None


def test_f2_a_followers_session_evicts_any_consumers_session() -> None:
    node = full_node()
    open_session(node, 5)
    smaller = open_session(node, 4)
    follower = open_session(node, 1, follower=True)
    assert follower != 0
    assert node.sessions.get(smaller) is None
    assert node.sessions.get(follower).is_privileged  # type: ignore[union-attr]


def test_f2_a_consumer_evicts_a_followers_session_only_if_it_is_unused() -> None:
    node = full_node()
    followers = [open_session(node, 1, follower=True) for _ in range(2)]
    for _ in range(3):
        node.now_ms += 600
        for session in followers:
            use(node, session)
        assert open_session(node, 5) == 0
    assert open_session(node, 2, follower=True) != 0  # an older and smaller follower's session is evicted
    node.now_ms += 1_001
    assert open_session(node, 1) != 0


def test_f2_with_zero_slots_no_session_is_opened() -> None:
    node = full_node(slots=0)
    assert open_session(node, 3) == 0


def test_statistics_follow_the_sizes_of_sessions() -> None:
    node = full_node()
    partitions = list(node.partitions)
    consumer = Consumer(node, [want(partitions[0], 0), want(partitions[1], 0)])
    consumer.poll()
    consumer.move(partitions[2], 0)
    consumer.move(partitions[3], 0)
    consumer.poll(forget=[partitions[0].key])
    assert node.sessions.statistics() == (1, 3, 0)
    node.sessions.remove(1)
    assert node.sessions.statistics() == (0, 0, 0)
    assert not node.sessions.remove(1)


def test_session_ids_are_neither_zero_nor_in_use() -> None:
    ids = iter([5, 5, 0, 6])
    sessions = FetchSessions(Purgatory(), lambda: next(ids))
    for expected in (5, 6):
        made = sessions.create({}, is_privileged=False, uses_topic_ids=True, now_ms=0)
        assert made is not None
        assert made.id == expected


def test_a_closed_session_has_no_purgatory_links() -> None:
    node = full_node()
    consumer = Consumer(node, [want(one, 0) for one in node.partitions])
    consumer.poll()
    consumer.poll()
    assert node.purgatory.statistics().linked_keys == 5
    consumer.poll(forget=[next(iter(node.partitions)).key])
    assert node.purgatory.statistics().linked_keys == 4
    node.sessions.remove(1)
    assert node.purgatory.statistics().linked_keys == 0


def test_a_session_may_contain_a_topic_and_its_successor_of_the_same_name() -> None:
    """By id they are two topics. A check of the name reaches the session while it contains either of them."""
    node = Node()
    old = node.lead("topic")
    consumer = Consumer(node, [want(old, 0)], max_wait_ms=500)
    consumer.poll(max_wait_ms=0)
    consumer.poll(max_wait_ms=0)
    node.partitions.remove(old.key)
    new_id = b"n" * 16
    node.unpublish("topic")
    files = node.files
    files.remove_directory("/data-1/topic-0")
    new = node.lead("topic", topic_id=new_id)
    asked = node.fetch([want(new, 0, topic_id=new_id)], session=1, epoch=2, forget=[old.key], max_wait_ms=500)
    assert asked.is_waiting
    node.append(new, b"a")
    assert not asked.is_waiting
    assert asked.only.records


def test_forgetting_the_old_topic_of_a_name_leaves_its_successor_linked() -> None:
    node = Node()
    old = node.lead("topic")
    consumer = Consumer(node, [want(old, 0)])
    consumer.poll()
    consumer.poll()
    node.partitions.remove(old.key)
    node.unpublish("topic")
    node.files.remove_directory("/data-1/topic-0")
    new_id = b"n" * 16
    new = node.lead("topic", topic_id=new_id)
    both = node.fetch([want(new, 0, topic_id=new_id)], session=1, epoch=2)
    assert sorted(one.error_code for topic in both.response.responses for one in topic.partitions) == [
        ErrorCode.NONE,
        ErrorCode.INCONSISTENT_TOPIC_ID,
    ]
    asked = node.fetch([], session=1, epoch=3, forget=[old.key], max_wait_ms=500)
    assert asked.is_waiting
    node.append(new, b"a")
    assert asked.only.records


def test_a_rewritten_log_of_equal_high_watermark_is_a_change_for_a_client_with_an_epoch() -> None:
    node = Node()
    partition = node.host(state=registration(2, (1, 2), leader_epoch=0))

    def take(*offsets: int, epoch: int) -> None:
        data = b"".join(bytes(batch(b"a", base_offset=offset, leader_epoch=epoch)) for offset in offsets)
        partition.role.append(data, high_watermark=2, leader_log_start_offset=0, now_ms=node.now_ms)

    take(0, 1, epoch=0)
    node.apply(partition, registration(3, (1, 2, 3), leader_epoch=4, partition_epoch=1))
    consumer = Consumer(node, [want(partition, 2, last_epoch=0)])
    consumer.poll()
    assert reported(consumer.poll()) == []
    partition.log.truncate_to(1, node.now_ms)
    take(1, epoch=4)
    assert consumer.poll().only.diverging_epoch.end_offset == 1


def test_a_client_gets_no_session_if_every_random_id_is_in_use() -> None:
    sessions = FetchSessions(Purgatory(), lambda: 7, slots=10)
    made = [sessions.create({}, is_privileged=False, uses_topic_ids=True, now_ms=0) for _ in range(2)]
    assert [None if one is None else one.id for one in made] == [7, None]


# All sessions together have a bounded number of partitions


def test_a_session_above_the_partition_limit_is_not_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tailrace.fetch.sessions.CONSUMER_PARTITIONS_MAX", 5)
    node = Node()
    partitions = three(node)
    wanted = [want(one, 0) for one in partitions]
    assert node.fetch(wanted, epoch=0).response.session_id == 1
    second = node.fetch(wanted, epoch=0)
    assert (second.response.session_id, reported(second)) == (0, [0, 1, 2])
    assert node.sessions.statistics().partitions == 3


def test_unused_sessions_are_evicted_to_make_room_for_partitions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tailrace.fetch.sessions.CONSUMER_PARTITIONS_MAX", 5)
    node = Node()
    wanted = [want(one, 0) for one in three(node)]
    assert node.fetch(wanted, epoch=0).response.session_id == 1
    node.now_ms += 120_001
    assert node.fetch(wanted, epoch=0).response.session_id == 2
    assert len(node.sessions) == 1


def test_followers_sessions_have_a_higher_partition_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tailrace.fetch.sessions.CONSUMER_PARTITIONS_MAX", 2)
    node = Node()
    node.know(broker(2))
    replicated = [node.host("replicated", number, state=registration(1, (1, 2))) for number in range(3)]
    wanted = [want(one, 0) for one in replicated]
    assert node.fetch(wanted, epoch=0).response.session_id == 0
    assert node.fetch(wanted, epoch=0, replica=2, replica_epoch=102).response.session_id == 1


def test_a_session_that_grows_above_the_partition_limit_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tailrace.fetch.sessions.CONSUMER_PARTITIONS_MAX", 2)
    node = Node()
    first, second, third = three(node)
    assert node.fetch([want(first, 0)], epoch=0).response.session_id == 1
    assert node.fetch([want(second, 0)], session=1, epoch=1).response.error_code == ErrorCode.NONE
    grown = node.fetch([want(third, 0)], session=1, epoch=2)
    assert (grown.response.error_code, reported(grown)) == (ErrorCode.FETCH_SESSION_ID_NOT_FOUND, [])
    assert (len(node.sessions), node.sessions.statistics().partitions) == (0, 0)


def test_a_session_closed_while_its_fetch_pauses_leaves_no_links(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tailrace.fetch.fetch_plan.PARTITIONS_PER_STEP", 2)
    node = Node()
    partitions = three(node)
    node.fetch([want(one, 0) for one in partitions], epoch=0)
    node.lead("another")  # so that the partitions are looked up again
    request = request_for([], session=1, epoch=1)
    steps = node.fetches.begin(ask_of(request, 18), 18, node.now_ms, lambda fetch, now_ms: None)
    next(steps)
    session = node.sessions.get(1)
    assert session is not None
    node.sessions.remove(1)
    run_steps(steps, node.now_ms)
    assert session.linked == {}


def test_long_unused_sessions_are_evicted_although_the_cache_has_room() -> None:
    ids = iter(range(1, 9))
    sessions = FetchSessions(Purgatory(), lambda: next(ids), eviction_ms=1_000)

    def begin(now_ms: int) -> FetchSession:
        fetches = {("topic", 0): PartitionFetch(("topic", 0), "topic", bytes(16))}
        made = sessions.create(fetches, is_privileged=False, uses_topic_ids=False, now_ms=now_ms)
        assert made is not None
        return made

    unused, used = begin(0), begin(0)
    sessions.touch(used, 500)
    assert sessions.next_deadline_ms() == 1_001
    sessions.tick(1_000)
    assert not unused.is_closed
    sessions.tick(1_001)
    assert unused.is_closed
    assert sessions.get(used.id) is used
    assert sessions.statistics() == (1, 1, 1)
    assert sessions.next_deadline_ms() == 1_501


def test_the_partitions_of_a_large_session_are_freed_in_steps() -> None:
    sessions = FetchSessions(Purgatory(), lambda: 7)
    fetches = {("topic", number): PartitionFetch(("topic", number), "topic", bytes(16)) for number in range(5_000)}
    sessions.create(fetches, is_privileged=False, uses_topic_ids=False, now_ms=0)
    sessions.remove(7)
    ticks = 0
    while sessions.next_deadline_ms() == 0:
        sessions.tick(0)
        ticks += 1
    assert ticks == 3
