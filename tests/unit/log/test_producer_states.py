"""L11: the producers of a partition, their open transactions, and the snapshots of both."""

from __future__ import annotations

from tailrace.log.producers.pending_snapshot import PRODUCERS_AT_ONCE, PRODUCERS_MAX
from tailrace.log.producers.producer_append import EndedTransaction, OpenTransaction
from tailrace.log.producers.producer_snapshot import decode_snapshot
from tailrace.log.producers.producer_state import AppendedBatch, ProducerState
from tailrace.log.producers.producer_states import ProducerStates
from tailrace.log.segments.position import LogPosition
from tailrace.log.upkeep.deferred import Deferred
from tailrace.model.ids import TopicPartition
from tailrace.records.batch import RecordBatch
from tailrace.records.checks.validation import Origin
from tests.support.batches import batch
from tests.support.memory_files import MemoryFiles
from tests.support.small_logs import FOLDER, NOW_MS, new_files

DAY_MS = 86_400_000


def producer_states(files: MemoryFiles | None = None) -> ProducerStates:
    return ProducerStates(files or new_files(), FOLDER, TopicPartition("topic", 0))


def write(states: ProducerStates, producer_id: int, offset: int, *, transactional: bool = False) -> None:
    """Take one batch of one record at an offset."""
    data = batch(
        b"v",
        timestamp=NOW_MS,
        producer_id=producer_id,
        sequence=0,
        transactional=transactional,
        base_offset=offset,
    )
    append = states.prepare(producer_id, Origin.REPLICATION)
    append.add(RecordBatch(memoryview(data)), LogPosition(offset, 0, 0))
    states.apply(append)
    states.end_offset = offset + 1


def names(files: MemoryFiles) -> list[str]:
    return sorted(files.tree(FOLDER))


def test_l11_a_snapshot_is_named_after_its_end_offset() -> None:
    files = new_files()
    states = producer_states(files)
    write(states, 7, 41)
    assert states.take_snapshot() == 42
    assert names(files) == ["00000000000000000042.snapshot"]
    assert states.latest_snapshot_offset == 42


def test_no_snapshot_is_taken_of_an_empty_log_or_twice_at_the_same_offset() -> None:
    files = new_files()
    states = producer_states(files)
    assert states.take_snapshot() is None
    write(states, 7, 41)
    states.take_snapshot()
    assert states.take_snapshot() is None
    assert names(files) == ["00000000000000000042.snapshot"]


def test_l11_producers_are_listed_in_the_order_of_a_java_hash_map() -> None:
    files = new_files()
    states = producer_states(files)
    for offset, producer_id in enumerate([3, 17, 16, 1]):
        write(states, producer_id, offset)
    states.take_snapshot()
    path = f"{FOLDER}/00000000000000000004.snapshot"
    assert [entry.producer_id for entry in decode_snapshot(files.read(path), path)] == [16, 17, 1, 3]


def test_l11_states_are_restored_from_the_latest_snapshot() -> None:
    files = new_files()
    states = producer_states(files)
    write(states, 7, 10)
    states.take_snapshot()
    write(states, 8, 20, transactional=True)
    states.take_snapshot()
    again = producer_states(files)
    again.truncate_and_reload(0, 30, NOW_MS)
    assert sorted(again.producers) == [7, 8]
    assert again.end_offset == 21
    assert again.first_unstable == LogPosition(20)
    assert list(again.producers[7].batches) == [AppendedBatch(0, 10, 0, NOW_MS)]


def test_l11_snapshots_outside_the_logs_bounds_are_removed() -> None:
    files = new_files()
    states = producer_states(files)
    for offset in (9, 19, 29, 39):
        write(states, 7, offset)
        states.take_snapshot()
    again = producer_states(files)
    again.truncate_and_reload(10, 35, NOW_MS)
    assert names(files) == ["00000000000000000020.snapshot", "00000000000000000030.snapshot"]
    assert again.end_offset == 30


def test_l11_a_corrupt_snapshot_is_removed_and_the_previous_one_is_used() -> None:
    files = new_files()
    states = producer_states(files)
    for offset in (9, 19):
        write(states, 7, offset)
        states.take_snapshot()
    files.write(f"{FOLDER}/00000000000000000020.snapshot", b"broken", sync=False)
    again = producer_states(files)
    again.truncate_and_reload(0, 30, NOW_MS)
    assert again.end_offset == 10
    assert names(files) == ["00000000000000000010.snapshot"]


def test_without_a_snapshot_the_log_is_read_from_its_start() -> None:
    states = producer_states()
    states.truncate_and_reload(5, 30, NOW_MS)
    assert (states.end_offset, states.producers) == (5, {})


def test_an_expired_producer_is_forgotten_but_not_inside_a_transaction() -> None:
    states = producer_states()
    write(states, 7, 10)
    write(states, 8, 11, transactional=True)
    states.remove_expired(NOW_MS + DAY_MS - 1)
    assert sorted(states.producers) == [7, 8]
    states.remove_expired(NOW_MS + DAY_MS)
    assert sorted(states.producers) == [8]


def test_an_expired_producer_is_not_loaded() -> None:
    files = new_files()
    states = producer_states(files)
    write(states, 7, 10)
    states.take_snapshot()
    again = producer_states(files)
    again.truncate_and_reload(0, 30, NOW_MS + DAY_MS)
    assert again.producers == {}


def test_the_first_unstable_offset_is_that_of_the_oldest_open_transaction() -> None:
    states = producer_states()
    assert states.first_unstable is None
    write(states, 8, 11, transactional=True)
    write(states, 7, 14, transactional=True)
    assert states.first_unstable == LogPosition(11, 0, 0)


def test_an_ended_transaction_stays_unstable_until_its_marker_is_replicated() -> None:
    states = producer_states()
    write(states, 8, 11, transactional=True)
    states.complete(EndedTransaction(8, 11, 20, is_aborted=True))
    assert states.first_unstable == LogPosition(11, 0, 0)
    states.high_watermark_moved(20)
    assert states.first_unstable == LogPosition(11, 0, 0)
    states.high_watermark_moved(21)
    assert states.first_unstable is None


def test_l10_an_abort_moves_the_last_stable_offset_to_the_next_open_transaction() -> None:
    states = producer_states()
    write(states, 7, 10, transactional=True)
    write(states, 8, 14, transactional=True)
    assert states.last_stable_offset_after(EndedTransaction(7, 10, 20, True)) == 14
    assert states.last_stable_offset_after(EndedTransaction(8, 14, 20, True)) == 10
    states.complete(EndedTransaction(7, 10, 20, True))
    assert states.last_stable_offset_after(EndedTransaction(8, 14, 30, True)) == 31


def test_a_moved_log_start_drops_transactions_that_ended_below_it() -> None:
    states = producer_states()
    write(states, 7, 10, transactional=True)
    states.complete(EndedTransaction(7, 10, 20, True))
    states.log_start_moved(50)
    assert states.first_unstable is None
    assert states.end_offset == 50


def test_snapshots_without_a_segment_are_removed_except_the_latest() -> None:
    files = new_files()
    states = producer_states(files)
    for offset in (9, 14, 19, 24):
        write(states, 7, offset)
        states.take_snapshot()
    again = producer_states(files)
    again.remove_stray_snapshots([0, 10, 20])
    assert sorted(again.snapshots) == [10, 20, 25]
    assert len(names(files)) == 3


def test_a_snapshot_marked_as_deleted_is_renamed_and_not_used() -> None:
    files = new_files()
    states = producer_states(files)
    write(states, 7, 9)
    states.take_snapshot()
    assert states.mark_snapshot_deleted(10) == f"{FOLDER}/00000000000000000010.snapshot.deleted"
    assert states.mark_snapshot_deleted(10) is None
    assert states.latest_snapshot_offset is None
    assert names(files) == ["00000000000000000010.snapshot.deleted"]


def test_truncating_fully_removes_all_producers_and_snapshots() -> None:
    files = new_files()
    states = producer_states(files)
    write(states, 7, 9, transactional=True)
    states.take_snapshot()
    states.truncate_fully(5)
    assert (states.producers, states.first_unstable, states.end_offset) == ({}, None, 5)
    assert names(files) == []
    assert states.take_snapshot() == 5


def test_loading_a_state_opens_its_transaction() -> None:
    states = producer_states()
    states.load(ProducerState(7, 0, -1, NOW_MS, 33))
    assert states.open_transactions == {33: OpenTransaction(7, LogPosition(33))}


MANY = PRODUCERS_MAX + 1


def many_producers(files: MemoryFiles) -> ProducerStates:
    states = producer_states(files)
    for producer_id in range(MANY):
        write(states, producer_id, producer_id)
    return states


def test_a_snapshot_of_many_producers_is_encoded_in_pieces_with_the_states_at_its_offset() -> None:
    files = new_files()
    states, deferred = many_producers(files), Deferred()
    states.snapshot_soon(deferred, NOW_MS)
    states.snapshot_soon(deferred, NOW_MS)  # there is one at a time
    assert deferred.run_due(NOW_MS, at_most=2) == 2
    assert names(files) == []
    for producer_id in (0, MANY // 2, MANY - 1, MANY):  # neither their changes nor a new producer are in it
        states.keep_for_snapshot([producer_id])
        write(states, producer_id, MANY + producer_id)
    states.expire(NOW_MS + DAY_MS)
    assert deferred.run_due(NOW_MS) <= MANY // PRODUCERS_AT_ONCE
    (name,) = names(files)
    assert name == f"{MANY:020}.snapshot"
    entries = decode_snapshot(files.read(f"{FOLDER}/{name}"), name)
    assert sorted((entry.producer_id, entry.last_offset) for entry in entries) == [(one, one) for one in range(MANY)]
    assert states.latest_snapshot_offset == MANY
    assert states.take_unsynced() == [f"{FOLDER}/{name}"]


def test_a_pending_snapshot_of_a_truncated_log_is_not_written() -> None:
    files = new_files()
    states, deferred = many_producers(files), Deferred()
    states.snapshot_soon(deferred, NOW_MS)
    states.truncate_and_reload(0, 1, NOW_MS)
    deferred.run_due(NOW_MS)
    assert names(files) == []


def test_the_expiry_of_many_producers_pauses() -> None:
    states = many_producers(new_files())
    steps = states.expire(NOW_MS + DAY_MS)
    next(steps)
    assert 0 < len(states.producers) < MANY
    assert list(steps) == []
    assert not states.producers
