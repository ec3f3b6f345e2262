"""L11, L14: producer states from the latest snapshot and the batches after it."""

from __future__ import annotations

from tailrace.log.partition_log import PartitionLog
from tailrace.log.producers.producer_replay import rebuild_producers
from tailrace.log.producers.producer_states import ProducerStates
from tailrace.model.ids import TopicPartition
from tests.support.memory_files import MemoryFiles
from tests.support.small_logs import FOLDER, NOW_MS, append, end_transaction, new_files, open_small, replicate


def busy_log(files: MemoryFiles) -> PartitionLog:
    """Return a log of three segments. Producer 7 is idempotent, 8 has committed, 9 has a transaction open since offset
    5."""
    log = open_small(files)
    append(log, b"a", b"b", producer_id=7, sequence=0)  # 0, 1
    append(log, b"c", producer_id=8, sequence=0, transactional=True)  # 2
    log.roll(NOW_MS)
    append(log, b"d", producer_id=7, sequence=2)  # 3
    end_transaction(log, 8, commit=True)  # 4
    append(log, b"e", producer_id=9, sequence=0, transactional=True)  # 5
    log.roll(NOW_MS)
    append(log, b"f", producer_id=7, sequence=3)  # 6
    append(log, b"g", producer_id=9, sequence=1, transactional=True)  # 7
    replicate(log)
    return log


def rebuilt(
    files: MemoryFiles, log: PartitionLog, end: int = 8, *, start: int = 0, clean: bool = False
) -> ProducerStates:
    states = ProducerStates(files, FOLDER, TopicPartition("topic", 0))
    rebuild_producers(states, log.segments, start, end, NOW_MS, clean=clean)
    return states


def remove_snapshots(files: MemoryFiles) -> None:
    for name in files.tree(FOLDER):
        if name.endswith(".snapshot"):
            files.remove(f"{FOLDER}/{name}")


def test_l14_a_replay_of_the_whole_log_gives_the_states_that_appending_gave() -> None:
    files = new_files()
    log = busy_log(files)
    remove_snapshots(files)
    states = rebuilt(files, log)
    assert states.producers == log.producers.producers
    assert sorted(states.open_transactions) == [5]
    assert states.end_offset == 8


def test_l14_snapshots_are_left_at_the_last_two_segments_and_at_the_end() -> None:
    files = new_files()
    log = busy_log(files)
    log.roll(NOW_MS)
    append(log, b"h")
    remove_snapshots(files)
    assert sorted(rebuilt(files, log, 9).snapshots) == [6, 8, 9]


def test_a_replay_starts_at_the_latest_snapshot() -> None:
    files = new_files()
    log = busy_log(files)
    states = rebuilt(files, log)
    assert sorted(states.producers) == [7, 8, 9]
    assert [memory.last_offset for memory in states.producers[7].batches] == [3, 6], "one from the snapshot, one since"


def test_a_replay_up_to_an_offset_leaves_out_what_follows() -> None:
    files = new_files()
    log = busy_log(files)
    remove_snapshots(files)
    states = rebuilt(files, log, 5)
    assert sorted(states.producers) == [7, 8]
    assert states.open_transactions == {}
    assert states.producers[8].transaction_first_offset is None


def test_a_replay_leaves_out_what_lies_below_the_log_start() -> None:
    files = new_files()
    log = busy_log(files)
    remove_snapshots(files)
    states = rebuilt(files, log, start=6)
    assert [memory.last_offset for memory in states.producers[7].batches] == [6]
    assert 8 not in states.producers


def test_l14_after_a_clean_stop_without_snapshots_there_are_no_producers_and_nothing_is_read() -> None:
    files = new_files()
    log = busy_log(files)
    remove_snapshots(files)
    log.abandon()
    files.open_count = 0
    states = rebuilt(files, log, clean=True)
    assert states.producers == {}
    assert sorted(states.snapshots) == [3, 6, 8]
    assert files.open_count == 0
