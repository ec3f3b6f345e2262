"""One partition's log: append, roll, flush, delete, truncate, close."""

from __future__ import annotations

import pytest

from tailrace.log.partition_log import PartitionLog
from tailrace.log.reading.log_read import OffsetOutOfRange
from tailrace.log.upkeep.retention import DeletionReason
from tailrace.log.watermarks import Isolation
from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.model.ids import TopicId
from tailrace.model.topic_config import TopicConfig
from tailrace.records.legacy import build_messages
from tailrace.records.record import Record, TimestampType
from tests.support.batches import batch, stored_batches
from tests.support.memory_files import MemoryFiles
from tests.support.small_logs import FOLDER, NOW_MS, append, end_transaction, new_files, open_small, replicate

SIZE = len(batch(b"a"))
THREE_BATCHES = {"internal.segment.bytes": str(3 * SIZE), "file.delete.delay.ms": "1000"}


def names(files: MemoryFiles, ending: str = "") -> list[str]:
    return [name.lstrip("0") for name in sorted(files.tree(FOLDER)) if name.endswith(ending)]


def bases(log: PartitionLog) -> list[int]:
    return list(log.segments.base_offsets)


def offsets(log: PartitionLog) -> list[int]:
    return [stored.base_offset for stored in stored_batches(log)]


def ten(files: MemoryFiles | None = None, settings: dict[str, str] | None = None) -> PartitionLog:
    """Return a log with ten batches of one record, a second apart, in segments at 0, 3, 6 and 9."""
    log = open_small(files, THREE_BATCHES | (settings or {}))
    for n in range(10):
        append(log, b"a", timestamp=NOW_MS + 1000 * n, now_ms=NOW_MS + 1000 * n, leader_epoch=n // 4)
    return log


# Append


def test_l1_a_new_partition_has_one_segment_and_an_empty_epoch_file() -> None:
    files = new_files()
    open_small(files)
    assert names(files) == [".index", ".log", ".timeindex", "leader-epoch-checkpoint"]
    assert files.read(f"{FOLDER}/leader-epoch-checkpoint") == b""


def test_l2_appends_get_the_next_offsets() -> None:
    log = open_small()
    first = append(log, b"a", b"b")
    second = append(log, b"c")
    assert (first.first_offset, first.last_offset) == (0, 1)
    assert (second.first_offset, second.last_offset) == (2, 2)
    assert (log.log_end_offset, log.high_watermark, log.log_start_offset) == (3, 0, 0)


def test_an_append_returns_the_log_append_time_if_the_broker_sets_it() -> None:
    log = open_small(settings={"message.timestamp.type": "LogAppendTime"})
    assert append(log, b"a", timestamp=5, now_ms=NOW_MS + 7).log_append_time_ms == NOW_MS + 7
    assert append(open_small(), b"a").log_append_time_ms == -1


def test_an_empty_append_changes_nothing() -> None:
    log = open_small()
    result = log.append_as_leader(bytearray(), leader_epoch=0, now_ms=NOW_MS)
    assert (result.first_offset, result.last_offset, log.log_end_offset) == (-1, -1, 0)


def test_l9_a_duplicate_gets_its_original_offsets_and_is_not_written() -> None:
    log = open_small()
    append(log, b"a", b"b", producer_id=7, sequence=0, timestamp=NOW_MS + 3)
    append(log, b"c", producer_id=7, sequence=2)
    again = append(log, b"a", b"b", producer_id=7, sequence=0)
    assert again.is_duplicate
    assert (again.first_offset, again.last_offset, again.log_append_time_ms) == (0, 1, NOW_MS + 3)
    assert (log.log_end_offset, offsets(log)) == (3, [0, 2])


def test_l9_a_gap_in_the_sequence_is_refused_and_not_written() -> None:
    log = open_small()
    append(log, b"a", producer_id=7, sequence=0)
    with pytest.raises(KafkaError) as caught:
        append(log, b"c", producer_id=7, sequence=2)
    assert caught.value.code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert (log.log_end_offset, offsets(log)) == (1, [0])


def test_an_append_larger_than_a_segment_is_refused() -> None:
    log = open_small(settings={"internal.segment.bytes": "100"})
    with pytest.raises(KafkaError) as caught:
        append(log, bytes(100))
    assert caught.value.code is ErrorCode.RECORD_LIST_TOO_LARGE


def test_l11_a_new_leader_epoch_is_stored_with_its_first_offset() -> None:
    log = ten()
    assert [tuple(entry) for entry in log.epochs.entries] == [(0, 0), (1, 4), (2, 8)]
    assert log.end_of_epoch(0) == (0, 4)
    assert log.end_of_epoch(2) == (2, 10)


def test_a_follower_writes_at_the_leaders_offsets() -> None:
    log = open_small()
    result = log.append_as_follower(batch(b"a", base_offset=5, leader_epoch=3), leader_epoch=3, now_ms=NOW_MS)
    assert (result.first_offset, log.log_end_offset) == (5, 6)
    assert [tuple(entry) for entry in log.epochs.entries] == [(3, 5)]


def test_batches_too_far_apart_for_one_segment_are_appended_one_at_a_time() -> None:
    log = open_small()
    far = 2**31 + 7
    data = batch(b"a", base_offset=0, leader_epoch=3) + batch(b"b", base_offset=far, leader_epoch=4)
    log.append_as_follower(data, leader_epoch=4, now_ms=NOW_MS)
    assert log.log_end_offset == 1
    assert [tuple(entry) for entry in log.epochs.entries] == [(3, 0)]
    log.append_as_follower(data[len(data) // 2 :], leader_epoch=4, now_ms=NOW_MS)
    assert log.log_end_offset == far + 1
    assert [tuple(entry) for entry in log.epochs.entries] == [(3, 0), (4, far)]
    assert log.segments.base_offsets == [0, far]


def test_messages_of_an_old_format_remove_the_leader_epochs() -> None:
    log = ten()
    data = build_messages([Record(10, NOW_MS, TimestampType.CREATE_TIME, None, b"v")], magic=1)
    result = log.append_as_follower(data, leader_epoch=5, now_ms=NOW_MS)
    assert (result.first_offset, result.last_offset, log.epochs.entries) == (-1, 10, [])


# Transactions


def test_l10_an_aborted_transaction_is_in_the_index_of_its_markers_segment() -> None:
    log = open_small()
    append(log, b"a", producer_id=7, sequence=0, transactional=True)
    append(log, b"b", producer_id=8, sequence=0, transactional=True)
    log.roll(NOW_MS)
    end_transaction(log, 7, commit=False)
    end_transaction(log, 8, commit=True)
    assert log.segments[0].transaction_index.entries == []
    assert [tuple(entry) for entry in log.segments[1].transaction_index.entries] == [(7, 0, 2, 1)]


def test_the_last_stable_offset_waits_for_open_transactions_and_their_replicated_markers() -> None:
    log = open_small()
    append(log, b"a")
    append(log, b"b", producer_id=7, sequence=0, transactional=True)
    append(log, b"c")
    replicate(log)
    assert (log.last_stable_offset, log.high_watermark) == (1, 3)
    end_transaction(log, 7, commit=True)
    assert log.last_stable_offset == 1, "the marker is not replicated yet"
    replicate(log)
    assert log.last_stable_offset == 4


def test_the_last_stable_offset_is_never_below_the_log_start() -> None:
    log = open_small()
    append(log, b"a", producer_id=7, sequence=0, transactional=True)
    append(log, b"b", b"c")
    replicate(log)
    log.delete_records(2, NOW_MS)
    assert (log.log_start_offset, log.last_stable_offset) == (2, 2)
    log.marks.check()


# Watermarks


def test_the_high_watermark_moves_up_within_the_log_and_never_back() -> None:
    log = ten()
    assert log.advance_high_watermark(4)
    assert not log.advance_high_watermark(4)
    assert not log.advance_high_watermark(2)
    assert log.advance_high_watermark(1000)
    assert log.high_watermark == 10


def test_f9_a_snapshot_of_the_marks_is_not_changed_by_a_later_append() -> None:
    log = ten()
    log.advance_high_watermark(5)
    marks = log.snapshot_marks()
    append(log, b"later")
    replicate(log)
    assert (marks.log_end_offset, marks.high_watermark_offset) == (10, 5)
    assert marks.high_watermark == (5, 3, 2 * SIZE), "with its place: the segment and the byte"


# Roll and flush


def test_l3_a_full_segment_is_sealed_and_the_next_one_starts_at_the_log_end() -> None:
    files = new_files()
    log = ten(files)
    assert bases(log) == [0, 3, 6, 9]
    assert names(files, ".log") == [".log", "3.log", "6.log", "9.log"]
    assert names(files, ".snapshot") == ["3.snapshot", "6.snapshot", "9.snapshot"]


def test_l3_a_follower_rolls_to_the_first_offset_of_the_received_batch() -> None:
    log = ten()
    large = batch(bytes(100), base_offset=50, leader_epoch=3)
    log.append_as_follower(large, leader_epoch=3, now_ms=NOW_MS)
    assert bases(log) == [0, 3, 6, 9, 50]


def test_l4_a_rolled_segment_is_flushed_soon_after() -> None:
    log = ten()
    assert log.recovery_point == 0
    log.run_due(NOW_MS + 10_000)
    assert log.recovery_point == 9


def test_l4_the_log_is_flushed_after_flush_messages() -> None:
    log = open_small(settings={"flush.messages": "4"})
    append(log, b"a", b"b", b"c")
    assert log.recovery_point == 0
    append(log, b"d")
    assert log.recovery_point == 4


def test_l4_flush_if_due_flushes_after_flush_ms() -> None:
    log = open_small(settings={"flush.ms": "1000"})
    assert not log.flush_if_due(NOW_MS + 5000), "there is nothing to flush"
    append(log, b"a")
    assert not log.flush_if_due(NOW_MS + 999)
    assert log.flush_if_due(NOW_MS + 1000)
    assert log.recovery_point == 1
    append(log, b"a")
    assert not log.flush_if_due(NOW_MS + 1999)


def test_l4_without_flush_settings_nothing_is_flushed_until_requested() -> None:
    log = open_small()
    for _ in range(50):
        append(log, b"a")
    assert not log.flush_if_due(NOW_MS + 10**9)
    assert log.recovery_point == 0
    log.flush(NOW_MS)
    assert log.recovery_point == 50


def test_rolling_an_empty_segment_replaces_it() -> None:
    files = new_files()
    log = open_small(files)
    append(log, b"a")
    log.roll(NOW_MS)
    log.roll(NOW_MS)
    assert bases(log) == [0, 1]
    assert names(files, "log.deleted") == ["1.log.deleted"]
    assert append(log, b"b").first_offset == 1


# Moving the start


def test_l12_delete_records_moves_the_log_start_within_the_high_watermark() -> None:
    log = ten()
    log.advance_high_watermark(8)
    assert log.delete_records(4, NOW_MS)
    assert not log.delete_records(4, NOW_MS)
    assert not log.delete_records(2, NOW_MS)
    assert (log.log_start_offset, bases(log)) == (4, [0, 3, 6, 9])
    with pytest.raises(OffsetOutOfRange) as caught:
        log.delete_records(9, NOW_MS)
    assert (caught.value.log_start_offset, caught.value.log_end_offset) == (4, 8)


def test_l12_segments_below_the_log_start_are_deleted_by_the_next_retention() -> None:
    files = new_files()
    log = ten(files)
    replicate(log)
    log.delete_records(7, NOW_MS)
    assert log.delete_old_segments(NOW_MS)[DeletionReason.LOG_START] == 2
    assert (bases(log), log.log_start_offset) == ([6, 9], 7)
    assert names(files, ".log.deleted") == [".log.deleted", "3.log.deleted"]
    log.run_due(NOW_MS + 999)
    assert len(names(files, ".log.deleted")) == 2, "readers may still hold them"
    log.run_due(NOW_MS + 1000)
    assert names(files, ".deleted") == []


def test_l12_epochs_move_up_with_the_log_start() -> None:
    files = new_files()
    log = ten(files)
    replicate(log)
    log.delete_records(5, NOW_MS)
    log.run_due(NOW_MS)
    assert files.read(f"{FOLDER}/leader-epoch-checkpoint") == b"0\n2\n1 5\n2 8\n"


def test_l12_retention_by_size_keeps_at_least_retention_bytes() -> None:
    log = ten(settings={"retention.bytes": str(5 * SIZE)})
    replicate(log)
    assert log.delete_old_segments(NOW_MS)[DeletionReason.SIZE] == 1
    assert (log.log_start_offset, log.size) == (3, 7 * SIZE)


def test_l12_retention_by_time_uses_the_timestamps_of_records() -> None:
    log = ten(settings={"retention.ms": "3000", "retention.bytes": "-1"})
    replicate(log)
    deleted = log.delete_old_segments(NOW_MS + 8001)
    assert deleted == {DeletionReason.LOG_START: 0, DeletionReason.SIZE: 0, DeletionReason.AGE: 2}
    assert log.log_start_offset == 6


def test_l12_when_everything_is_too_old_an_empty_segment_remains() -> None:
    log = ten(settings={"retention.ms": "3000"})
    replicate(log)
    assert log.delete_old_segments(NOW_MS + 10**9)[DeletionReason.AGE] == 4
    assert (bases(log), log.log_start_offset, log.log_end_offset, log.size) == ([10], 10, 10, 0)
    assert append(log, b"next").first_offset == 10


def test_l12_a_compacted_log_ignores_retention_by_time_and_size() -> None:
    log = open_small(settings={"cleanup.policy": "compact", "retention.ms": "1", "retention.bytes": "1"})
    data = batch((b"k", b"v"), timestamp=NOW_MS)
    log.append_as_leader(data, leader_epoch=0, now_ms=NOW_MS)
    replicate(log)
    assert log.delete_old_segments(NOW_MS + 10**9) == {DeletionReason.LOG_START: 0}


# Truncate


def test_l11_truncation_cuts_segments_epochs_and_producers() -> None:
    files = new_files()
    log = ten(files)
    append(log, b"x", producer_id=7, sequence=0, leader_epoch=3)
    replicate(log)
    assert log.truncate_to(5, NOW_MS)
    assert (offsets(log), bases(log)) == ([0, 1, 2, 3, 4], [0, 3])
    assert (log.log_end_offset, log.high_watermark) == (5, 5)
    assert [tuple(entry) for entry in log.epochs.entries] == [(0, 0), (1, 4)]
    assert log.producers.producers == {}
    assert names(files, "log.deleted") == ["6.log.deleted", "9.log.deleted"]
    assert append(log, b"again").first_offset == 5


def test_a_new_config_reaches_a_sealed_segment_when_a_truncation_makes_it_active() -> None:
    log = ten()
    sealed, config = log.segments.first, TopicConfig(segment_bytes=500)
    log.update_config(config)
    assert log.segments.active.config is config
    assert sealed.config is not config, "a change of settings must not walk over all segments"
    log.truncate_to(2, NOW_MS)
    assert log.segments.active is sealed
    assert sealed.config is config


def test_truncation_inside_a_batch_cuts_the_whole_batch_but_keeps_the_requested_log_end() -> None:
    log = open_small()
    append(log, b"a")
    append(log, b"b", b"c", b"d")
    assert log.truncate_to(2, NOW_MS)
    assert (offsets(log), log.log_end_offset) == ([0], 2)


def test_truncation_past_the_end_changes_nothing() -> None:
    log = ten()
    assert not log.truncate_to(10, NOW_MS)
    assert not log.truncate_to(1000, NOW_MS)
    assert log.log_end_offset == 10


def test_truncation_below_the_first_segment_starts_again_there() -> None:
    log = ten()
    replicate(log)
    log.delete_records(6, NOW_MS)
    log.delete_old_segments(NOW_MS)
    assert log.truncate_to(2, NOW_MS)
    assert (bases(log), log.log_start_offset, log.log_end_offset, log.high_watermark) == ([2], 2, 2, 2)


def test_truncating_fully_continues_at_another_offset() -> None:
    files = new_files()
    log = ten(files)
    log.truncate_fully(5000, NOW_MS)
    assert (bases(log), log.log_start_offset, log.log_end_offset, log.high_watermark) == ([5000], 5000, 5000, 5000)
    assert (log.epochs.entries, log.producers.latest_snapshot_offset) == ([], None)
    assert append(log, b"a").first_offset == 5000


def test_a_truncated_transaction_is_no_longer_open() -> None:
    log = open_small()
    append(log, b"a")
    append(log, b"b", producer_id=7, sequence=0, transactional=True)
    append(log, b"c")
    log.truncate_to(1, NOW_MS)
    replicate(log)
    assert log.last_stable_offset == 1


# Its life


def test_closing_a_log_leaves_exact_indexes_and_a_snapshot() -> None:
    files = new_files()
    log = ten(files)
    log.flush(NOW_MS)
    log.close()
    assert files.open_count == 0
    assert files.size(f"{FOLDER}/00000000000000000009.timeindex") == 12
    assert names(files, ".snapshot") == ["3.snapshot", "6.snapshot", "9.snapshot", "10.snapshot"]


def test_a_reopened_log_has_the_state_that_was_closed() -> None:
    files = new_files()
    log = ten(files)
    append(log, b"x", producer_id=7, sequence=0, leader_epoch=2)
    before = list(stored_batches(log))
    log.flush(NOW_MS)
    log.close()
    again = open_small(files, THREE_BATCHES, recovery_point=log.recovery_point)
    assert list(stored_batches(again)) == before
    assert (again.log_end_offset, again.recovery_point, bases(again)) == (11, 11, bases(log))
    assert again.epochs.entries == log.epochs.entries
    assert append(again, b"y", producer_id=7, sequence=1).first_offset == 11


def test_abandoning_writes_nothing() -> None:
    files = new_files()
    log = ten(files)
    before = files.tree(FOLDER)
    log.abandon()
    assert files.tree(FOLDER) == before
    assert files.open_count == 0


def test_a_topic_id_is_written_once_and_must_stay_the_same() -> None:
    files = new_files()
    log = open_small(files)
    topic_id = TopicId.parse("AAAAAAAAQACAAAAAAAAAAQ")
    log.assign_topic_id(topic_id)
    log.assign_topic_id(topic_id)
    assert files.read(f"{FOLDER}/partition.metadata") == b"version: 0\ntopic_id: AAAAAAAAQACAAAAAAAAAAQ"
    with pytest.raises(KafkaError) as caught:
        log.assign_topic_id(TopicId.parse("AAAAAAAAQACAAAAAAAAAAg"))
    assert caught.value.code is ErrorCode.INCONSISTENT_TOPIC_ID
    log.close()
    assert open_small(files).topic_id == topic_id


def test_a_log_works_in_a_renamed_folder() -> None:
    files = new_files()
    log = ten(files)
    log.rename_folder("topic-0.abc-delete")
    assert not files.exists(FOLDER)
    append(log, b"more", leader_epoch=7)
    assert files.read("/data/topic-0.abc-delete/leader-epoch-checkpoint").endswith(b"7 10\n")
    assert log.read(0, 10**6).size > 0
    log.delete()
    assert not files.exists("/data/topic-0.abc-delete")
    assert files.open_count == 0


def test_a_new_config_applies_from_the_next_append_on() -> None:
    log = open_small()
    for _ in range(5):
        append(log, b"a")
    log.update_config(TopicConfig(internal_segment_bytes=2 * SIZE))
    append(log, b"a")
    assert bases(log) == [0, 5]


def test_a_read_committed_read_lists_aborted_transactions() -> None:
    log = open_small()
    append(log, b"a", producer_id=7, sequence=0, transactional=True)
    end_transaction(log, 7, commit=False)
    replicate(log)
    read = log.read(0, 10**6, Isolation.READ_COMMITTED)
    assert read.aborted is not None
    assert [(one.producer_id, one.first_offset) for one in read.aborted] == [(7, 0)]
    assert log.read(0, 10**6, Isolation.READ_UNCOMMITTED).aborted is None
