"""QuorumObserver and ObservedLog: what a broker has of the metadata log, whatever the quorum does."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from typing import Any

import pytest

from tailrace.protocol import messages as m
from tests.support.metadata_snapshots import write_snapshot
from tests.unit.metadata.played_quorum import PORTS, SMALL, Observing, PlayedQuorum


def test_the_log_is_followed_byte_for_byte() -> None:
    quorum = PlayedQuorum()
    quorum.topic(1)
    one = Observing(quorum)
    one.run()
    assert one.log.image == quorum.log.image
    quorum.topic(2)
    one.run()
    assert one.log.image == quorum.log.image
    assert [sorted(change.image.topics) for change in one.changes][-1] == ["topic-1", "topic-2"]
    name = "__cluster_metadata-0/00000000000000000000.log"
    assert one.files.read(f"/data/{name}") == quorum.files.read(f"/controller/{name}")
    state = json.loads(one.files.read("/data/__cluster_metadata-0/quorum-state"))
    assert (state["leaderId"], state["leaderEpoch"], state["data_version"]) == (PORTS[0], 1, 1)


def test_only_committed_records_change_the_image() -> None:
    quorum = PlayedQuorum()
    quorum.topic(1)
    committed = quorum.log.log.log_end_offset
    quorum.topic(2)
    quorum.high_watermark = committed
    one = Observing(quorum)
    one.run()
    assert one.log.end_offset == quorum.log.log.log_end_offset
    assert list(one.log.image.topics) == ["topic-1"]
    quorum.high_watermark = None
    one.run()
    assert list(one.log.image.topics) == ["topic-1", "topic-2"]


def test_the_leader_is_found_by_asking_any_controller() -> None:
    quorum = PlayedQuorum()
    quorum.leader = PORTS[2]
    one = Observing(quorum)
    one.run(6)
    assert [port for port, _ in quorum.asked[:2]] == [PORTS[0], PORTS[2]]
    assert one.observer.leader == ("127.0.0.1", PORTS[2])


def test_without_a_leader_the_controllers_are_asked_one_after_the_other() -> None:
    quorum = PlayedQuorum()
    quorum.leader = None
    one = Observing(quorum)
    one.run(12)
    assert [port for port, _ in quorum.asked[:6]] == [*PORTS, *PORTS]
    assert one.now_ms >= 100 + 20 * (len(quorum.asked) - 1)
    quorum.leader = PORTS[1]
    one.run(8)
    assert one.observer.leader == ("127.0.0.1", PORTS[1])


def test_a_leader_that_does_not_answer_is_replaced() -> None:
    quorum = PlayedQuorum()
    one = Observing(quorum)
    one.run(6)
    quorum.leader = PORTS[1]
    quorum.log.begin_epoch(3)
    quorum.topic(1)
    one.fail()
    assert one.observer.leader is None
    one.run()
    assert one.observer.leader == ("127.0.0.1", PORTS[1])
    assert one.log.epoch == 2
    assert one.log.image == quorum.log.image


def test_responses_of_an_older_epoch_are_ignored() -> None:
    quorum = PlayedQuorum()
    one = Observing(quorum)
    one.run(6)
    one.log.note_leader(PORTS[1], 5)
    quorum.topic(1)
    one.run(10)
    assert "topic-1" not in one.log.image.topics


def test_records_that_only_a_lost_leader_had_are_truncated() -> None:
    quorum, other = PlayedQuorum(), PlayedQuorum()
    quorum.topic(1)
    quorum.high_watermark = quorum.log.log.log_end_offset
    quorum.topic(2)
    one = Observing(quorum)
    one.run()
    other.topic(1)
    other.log.begin_epoch(3)
    other.topic(3)
    one.quorum = other
    one.run()
    assert sorted(one.log.image.topics) == ["topic-1", "topic-3"]
    name = "__cluster_metadata-0/00000000000000000000.log"
    assert one.files.read(f"/data/{name}") == other.files.read(f"/controller/{name}")


def test_committed_records_are_never_truncated(caplog: pytest.LogCaptureFixture) -> None:
    quorum, other = PlayedQuorum(), PlayedQuorum()
    quorum.topic(1)
    quorum.topic(2)
    one = Observing(quorum)
    one.run()
    other.topic(1)
    other.log.begin_epoch(3)
    one.quorum = other
    with caplog.at_level(logging.ERROR):
        one.run()
    assert "cannot be continued" in caplog.text
    assert list(one.log.image.topics) == ["topic-1", "topic-2"]


def damage_records(response: Any) -> None:
    for topic in getattr(response, "responses", ()):
        for answer in topic.partitions:
            answer.records = bytes(answer.records or b"")[:-1] + b"\xff"


def drop_partitions(response: Any) -> None:
    for topic in [*getattr(response, "responses", ()), *getattr(response, "topics", ())]:
        topic.partitions.clear()


def empty_pieces(response: Any) -> None:
    for topic in getattr(response, "topics", ()):
        for answer in topic.partitions:
            answer.unaligned_records = b""


def damage_pieces(response: Any) -> None:
    for topic in getattr(response, "topics", ()):
        for answer in topic.partitions:
            answer.unaligned_records = bytes(len(answer.unaligned_records))


@pytest.mark.parametrize("damage", [damage_records, drop_partitions, empty_pieces, damage_pieces])
def test_after_damaged_responses_the_log_is_fetched_again_later(damage: Callable[[Any], None]) -> None:
    quorum = PlayedQuorum(SMALL)
    for number in range(20):
        quorum.topic(number)
    if damage in (empty_pieces, damage_pieces):
        write_snapshot(quorum.log, 9)
        quorum.log.log.run_due(10**9)
    one = Observing(quorum)
    quorum.damage = damage
    begun_ms = one.now_ms
    one.run(200)
    assert one.log.image != quorum.log.image
    assert one.now_ms > begun_ms + 500  # it rests in between
    quorum.damage = lambda response: None
    one.run(200)
    assert one.log.image == quorum.log.image


def test_a_snapshot_of_the_leader_replaces_the_log_and_removes_deleted_metadata() -> None:
    quorum = PlayedQuorum(SMALL)
    quorum.topic(1)
    quorum.topic(2)
    quorum.commit(m.ConfigRecord(resource_type=2, resource_name="topic-1", name="retention.ms", value="1"))
    one = Observing(quorum)
    one.run()
    quorum.commit(m.RemoveTopicRecord(topic_id=(1001).to_bytes(16, "big")))
    for number in range(3, 20):
        quorum.topic(number)
    write_snapshot(quorum.log, 9)
    quorum.log.log.run_due(10**9)
    assert quorum.log.log.log_start_offset > one.log.end_offset
    before = len(one.changes)
    one.run(200)
    assert one.log.image == quorum.log.image
    taken = one.changes[before].delta
    assert [topic.name for topic in taken.topics.deleted.values()] == ["topic-1"]
    assert sorted(taken.topics.created) == sorted(f"topic-{number}" for number in range(3, 20))
    quorum.topic(99)
    one.run()
    again = Observing(quorum, one.files)
    assert "topic-19" in again.log.image.topics  # from the snapshot, before anybody was asked
    again.run()
    assert again.log.image == quorum.log.image


def test_after_a_restart_fetching_continues_at_the_log_end() -> None:
    quorum = PlayedQuorum()
    quorum.topic(1)
    one = Observing(quorum)
    one.run()
    one.log.close(one.now_ms)
    quorum.topic(2)
    again = Observing(quorum, one.files)
    assert not again.log.image.topics  # it is not known yet how much of it is committed
    assert again.log.end_offset == one.log.end_offset
    again.run()
    assert again.log.image == quorum.log.image


def test_a_snapshot_of_our_own_is_written_when_it_is_due() -> None:
    quorum = PlayedQuorum()
    quorum.topic(1)
    one = Observing(quorum)
    one.run()
    due_ms = one.log.next_deadline_ms()
    assert due_ms is not None
    while one.log.tick(due_ms):
        pass
    assert one.log.snapshots.latest is not None
    assert one.log.snapshots.latest.end_offset == quorum.log.log.log_end_offset
    again = Observing(quorum, one.files)
    assert again.log.image.topics.keys() == quorum.log.image.topics.keys()


def test_a_failed_disk_is_reported_as_the_failure_of_the_log() -> None:
    quorum = PlayedQuorum()
    one = Observing(quorum)
    one.run()

    def fail(*_: object, **__: object) -> None:
        raise OSError(28, "no space left on device")

    one.log.log.append_as_follower = fail  # type: ignore[method-assign,assignment]
    quorum.topic(1)
    for _ in range(3):
        for request in one.outbox.take_requests():
            quorum.answer(request, one.now_ms)
    assert one.log.failure is not None
