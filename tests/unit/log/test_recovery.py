"""L14: opening a folder after a clean stop, and after a crash."""

from __future__ import annotations

import pytest

from tailrace.log.disk import file_names
from tailrace.log.disk.checkpoints import CorruptCheckpoint
from tailrace.log.partition_log import PartitionLog
from tailrace.log.recovery.recovery import RecoveryReport, open_log
from tailrace.log.segments.segment import Segment
from tailrace.model.configs.topic_settings import parse_topic_config
from tailrace.model.topic_config import TopicConfig
from tailrace.records.batch import CorruptBatch
from tests.support.batches import batch, stored_batches
from tests.support.memory_files import MemoryFiles
from tests.support.small_logs import FOLDER, NOW_MS, append, end_transaction, new_files, open_small, placed, put

SIZE = len(batch(b"a"))
SMALL = {"internal.segment.bytes": str(3 * SIZE), "index.interval.bytes": str(SIZE)}


def eight(files: MemoryFiles, *, flushed: int = 0) -> None:
    """Return eight batches in three segments (0, 3, 6) as after a crash. The first `flushed` offsets are durable."""
    log = open_small(files, SMALL)
    for n in range(8):
        append(log, b"a", timestamp=NOW_MS + n, leader_epoch=n // 3)
    log.flush_to(flushed, NOW_MS)
    log.abandon()


def recovered(
    files: MemoryFiles, report: RecoveryReport, *, recovery_point: int = 0, **settings: object
) -> PartitionLog:
    return open_small(files, SMALL, clean=False, recovery_point=recovery_point, report=report, **settings)  # type: ignore[arg-type]


def path(base: int, kind: str = ".log") -> str:
    return f"{FOLDER}/{base:020d}{kind}"


def offsets(log: PartitionLog) -> list[int]:
    return [stored.base_offset for stored in stored_batches(log)]


def files_of(files: MemoryFiles, ending: str) -> list[str]:
    return [name for name in sorted(files.tree(FOLDER)) if name.endswith(ending)]


def test_l14_after_a_clean_stop_nothing_is_scanned() -> None:
    files = new_files()
    log = open_small(files, SMALL)
    for _ in range(8):
        append(log, b"a")
    log.flush(NOW_MS)
    log.close()
    report = RecoveryReport()
    again = open_small(files, SMALL, clean=True, recovery_point=8, report=report)
    assert report == RecoveryReport()
    assert (again.log_end_offset, again.recovery_point) == (8, 8)


def test_l14_only_segments_past_the_recovery_point_are_scanned() -> None:
    files = new_files()
    eight(files, flushed=6)
    report = RecoveryReport()
    log = recovered(files, report, recovery_point=6)
    assert (report.segments_scanned, report.bytes_scanned) == (1, 2 * SIZE)
    assert offsets(log) == list(range(8))
    report = RecoveryReport()
    eight(files := new_files(), flushed=4)
    recovered(files, report, recovery_point=4)
    assert report.segments_scanned == 2, "the one that holds the recovery point, too"


@pytest.mark.parametrize("cut", [1, SIZE - 61, SIZE - 12, SIZE - 1])
def test_l14_a_torn_tail_is_cut_at_the_last_whole_batch(cut: int) -> None:
    files = new_files()
    eight(files)
    files.write(path(6), files.read(path(6))[:-cut], sync=False)
    report = RecoveryReport()
    log = recovered(files, report)
    assert (offsets(log), log.log_end_offset) == (list(range(7)), 7)
    assert (report.bytes_cut, report.broken) == (SIZE - cut, [])
    assert files.size(path(6)) == SIZE
    assert append(log, b"next").first_offset == 7


def test_l14_zeros_after_the_last_batch_are_cut() -> None:
    files = new_files()
    eight(files)
    files.write(path(6), files.read(path(6)) + bytes(300), sync=False)
    report = RecoveryReport()
    assert recovered(files, report).log_end_offset == 8
    assert report.bytes_cut == 300
    assert path(6) in report.problems[0]


def test_l14_a_damaged_batch_ends_the_log_and_later_bytes_are_kept_as_broken_files() -> None:
    files = new_files()
    eight(files)
    data = bytearray(files.read(path(3)))
    data[SIZE + 65] ^= 0xFF  # inside the second batch of the middle segment
    files.write(path(3), data, sync=False)
    report = RecoveryReport()
    log = recovered(files, report)
    assert offsets(log) == [0, 1, 2, 3]
    assert f"{path(3)} at position {SIZE}: checksum does not match" in report.problems[0]
    assert report.broken == [f"{path(3)}.{SIZE}.broken", f"{path(6)}.broken"]
    assert files.read(f"{path(3)}.{SIZE}.broken") == data[SIZE:]
    assert append(log, b"next").first_offset == 4


def test_l14_segments_after_a_torn_segment_are_set_aside() -> None:
    files = new_files()
    eight(files)
    files.write(path(3), files.read(path(3))[:-1], sync=False)
    log = recovered(files, RecoveryReport())
    assert list(log.segments.base_offsets) == [0, 3]
    assert files_of(files, ".index") == ["00000000000000000000.index", "00000000000000000003.index"]
    assert files_of(files, ".broken") == ["00000000000000000006.log.broken"]


def test_l14_indexes_are_rebuilt_as_appending_made_them() -> None:
    files = new_files()
    eight(files)
    reference = new_files()
    eight(reference)
    log = recovered(reference, RecoveryReport())
    log.flush(NOW_MS)
    log.close()
    for name in files_of(files, "index"):
        files.remove(f"{FOLDER}/{name}")
    log = recovered(files, RecoveryReport())
    log.flush(NOW_MS)
    log.close()
    assert files.tree(FOLDER) == reference.tree(FOLDER)


@pytest.mark.parametrize("kind", [".index", ".timeindex"])
def test_an_index_missing_after_a_clean_stop_is_rebuilt_alone(kind: str) -> None:
    files = new_files()
    eight(files)
    log = recovered(files, RecoveryReport())
    log.flush(NOW_MS)
    log.close()
    before = files.read(path(3, kind))
    files.remove(path(3, kind))
    report = RecoveryReport()
    open_small(files, SMALL, clean=True, recovery_point=8, report=report)
    assert report.indexes_rebuilt == [path(3)]
    assert report.segments_scanned == 1
    assert files.read(path(3, kind)) == before


@pytest.mark.parametrize(("kind", "size"), [(".index", 9), (".timeindex", 11)])
def test_an_index_of_an_impossible_size_is_rebuilt(kind: str, size: int) -> None:
    files = new_files()
    eight(files, flushed=8)
    before = files.read(path(3, kind))
    files.write(path(3, kind), bytes(size), sync=False)
    report = RecoveryReport()
    recovered(files, report, recovery_point=8)
    assert f"{path(3, kind)} has {size} bytes" in report.problems[0]
    assert files.read(path(3, kind)) == before


def test_a_corrupt_transaction_index_is_rebuilt() -> None:
    files = new_files()
    log = open_small(files)
    append(log, b"a", producer_id=7, sequence=0, transactional=True)
    end_transaction(log, 7, commit=False)
    log.flush(NOW_MS)
    log.close()
    before = files.read(path(0, ".txnindex"))
    files.write(path(0, ".txnindex"), b"\x00\x09" + before[2:], sync=False)
    report = RecoveryReport()
    open_small(files, clean=True, recovery_point=2, report=report)
    assert "unknown entry version 9" in report.problems[0]
    assert files.read(path(0, ".txnindex")) == before


def test_an_index_without_a_log_is_removed() -> None:
    files = new_files()
    eight(files)
    files.write(path(100, ".index"), b"", sync=False)
    recovered(files, RecoveryReport())
    assert not files.exists(path(100, ".index"))


def test_l14_producer_states_are_rebuilt_and_snapshots_written() -> None:
    files = new_files()
    log = open_small(files)
    append(log, b"a", b"b", producer_id=7, sequence=0)
    append(log, b"c", producer_id=8, sequence=0, transactional=True)
    producers = log.producers.producers
    log.abandon()
    again = open_small(files, clean=False)
    assert again.producers.producers == producers
    assert again.producers.latest_snapshot_offset == 3
    assert again.marks.first_unstable is not None
    assert again.marks.first_unstable.offset == 2


def test_l14_leader_epochs_are_rebuilt_from_the_batches() -> None:
    files = new_files()
    eight(files)
    files.remove(f"{FOLDER}/leader-epoch-checkpoint")
    log = recovered(files, RecoveryReport())
    assert [tuple(entry) for entry in log.epochs.entries] == [(0, 0), (1, 3), (2, 6)]


def test_epochs_of_replaced_records_are_dropped_in_recovery() -> None:
    """A log was cut, took what another leader has in an earlier epoch, and crashed before the epochs were written."""
    files = new_files()
    eight(files, flushed=3)
    files.write(f"{FOLDER}/leader-epoch-checkpoint", b"0\n3\n0 0\n4 5\n6 7\n", sync=False)
    log = recovered(files, RecoveryReport(), recovery_point=3)
    assert [tuple(entry) for entry in log.epochs.entries] == [(0, 0), (1, 3), (2, 6)]
    assert log.epochs.make_durable(log.log_end_offset)
    assert files.read(f"{FOLDER}/leader-epoch-checkpoint") == b"0\n3\n0 0\n1 3\n2 6\n"


def test_l14_epochs_past_the_recovered_end_are_dropped() -> None:
    files = new_files()
    eight(files)
    files.remove(path(6))
    log = recovered(files, RecoveryReport())
    assert [tuple(entry) for entry in log.epochs.entries] == [(0, 0), (1, 3)]
    assert log.epochs.write_without_records()
    assert files.read(f"{FOLDER}/leader-epoch-checkpoint") == b"0\n2\n0 0\n1 3\n"


def test_a_missing_folder_is_created() -> None:
    files = MemoryFiles()
    log = open_log(files, "/data/topic-7", TopicConfig(), now_ms=NOW_MS, log_start_offset=40)
    assert (str(log.partition), log.log_start_offset, log.log_end_offset) == ("topic-7", 40, 40)
    assert list(log.segments.base_offsets) == [40]


def test_a_folder_that_belongs_to_no_partition_is_refused() -> None:
    with pytest.raises(ValueError, match="/data/nothing is not named like a partition's folder, topic-N"):
        open_log(MemoryFiles(), "/data/nothing", TopicConfig(), now_ms=NOW_MS)


def test_the_log_start_is_that_of_the_checkpoint_or_of_the_first_segment() -> None:
    files = new_files()
    eight(files)
    assert recovered(files, RecoveryReport(), log_start_offset=4).log_start_offset == 4
    for kind in (".log", ".index", ".timeindex"):
        files.remove(path(0, kind))
    assert recovered(files, RecoveryReport(), log_start_offset=1).log_start_offset == 3


def test_a_log_that_ends_before_its_start_is_kept_as_broken_files_and_restarted_there() -> None:
    files = new_files()
    eight(files)
    report = RecoveryReport()
    log = recovered(files, report, log_start_offset=50)
    assert (log.log_start_offset, log.log_end_offset, offsets(log)) == (50, 50, [])
    assert len(files_of(files, ".broken")) == 3, "nothing is thrown away"
    assert any("ends at 8, before its log start offset 50" in problem for problem in report.problems)


def test_a_malformed_epoch_file_is_an_error_that_names_it() -> None:
    files = new_files()
    eight(files)
    files.write(f"{FOLDER}/leader-epoch-checkpoint", b"0\n5\n", sync=False)
    with pytest.raises(CorruptCheckpoint, match="leader-epoch-checkpoint"):
        recovered(files, RecoveryReport())


def test_opening_without_recovery_refuses_a_torn_tail() -> None:
    files = new_files()
    eight(files, flushed=8)
    files.write(path(6), files.read(path(6))[:-1], sync=False)
    before = files.tree(FOLDER)
    with pytest.raises(CorruptBatch, match=path(6)):
        open_log(files, FOLDER, parse_topic_config(SMALL), now_ms=NOW_MS, recovery_point=8, recover=False)
    assert files.tree(FOLDER) == before


# Interrupted changes


def write_segment(files: MemoryFiles, base: int, suffix: str, *values: bytes) -> None:
    segment = Segment.create(files, FOLDER, base, TopicConfig(), now_ms=NOW_MS, suffix=suffix)
    put(segment, *(placed(base + n, value) for n, value in enumerate(values)))
    segment.seal()


def test_l14_files_marked_deleted_are_removed() -> None:
    files = new_files()
    eight(files)
    write_segment(files, 50, file_names.DELETED, b"old")
    files.write(path(50, ".snapshot.deleted"), b"", sync=False)
    recovered(files, RecoveryReport())
    assert files_of(files, ".deleted") == []


def test_l13_unfinished_cleaned_files_are_removed() -> None:
    files = new_files()
    eight(files)
    write_segment(files, 0, file_names.CLEANED, b"clean")
    log = recovered(files, RecoveryReport())
    assert offsets(log) == list(range(8))
    assert files_of(files, ".cleaned") == []


def test_l13_a_swap_with_complete_files_is_finished() -> None:
    files = new_files()
    eight(files, flushed=8)
    segment = Segment.create(files, FOLDER, 0, TopicConfig(), now_ms=NOW_MS, suffix=file_names.SWAP)
    put(segment, placed(1, b"one"), placed(5, b"five"))
    segment.seal()
    log = recovered(files, RecoveryReport(), recovery_point=8)
    assert offsets(log) == [1, 5, 6, 7]
    assert list(log.segments.base_offsets) == [0, 6]
    assert files_of(files, ".swap") == []


def test_l13_a_swap_beside_files_still_being_cleaned_is_not_finished() -> None:
    files = new_files()
    eight(files)
    write_segment(files, 0, file_names.CLEANED, b"clean")
    write_segment(files, 3, file_names.SWAP, b"swap")
    log = recovered(files, RecoveryReport())
    assert offsets(log) == list(range(8))
    assert files_of(files, ".swap") == files_of(files, ".cleaned") == []


def test_a_segment_whose_offsets_overflow_is_split() -> None:
    files = new_files()
    eight(files)
    far = bytes(placed(2**31 + 10, b"far", timestamp=NOW_MS).view)
    files.write(path(6), files.read(path(6)) + far, sync=False)
    log = recovered(files, RecoveryReport())
    assert offsets(log) == [*range(8), 2**31 + 10]
    assert list(log.segments.base_offsets) == [0, 3, 6, 2**31 + 10]
