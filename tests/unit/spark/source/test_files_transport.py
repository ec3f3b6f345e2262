"""Rows of segment files, compared with the plain readers of golden directories and with Kafka's own results."""

from __future__ import annotations

import base64
import shutil
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tailrace.log.directories.data_directory import PartitionFolder
from tailrace.log.disk.files import DiskFiles, Entry
from tailrace.log.inspect.offline import open_bounds
from tailrace.log.inspect.offline_records import RecordReader, Selection
from tailrace.log.watermarks import Isolation
from tailrace.model.ids import TopicPartition
from tailrace.records.columnar import columns as kernel
from tailrace.records.columnar.columns import RecordColumns
from tailrace.records.record import Record
from tailrace.spark.source.errors import DamagedLog, OffsetRangeLost, UnknownLog, Unreadable
from tailrace.spark.source.options import read_options
from tailrace.spark.source.planning.offset_ranges import OffsetRange
from tailrace.spark.source.planning.pruning import Condition, narrowing
from tailrace.spark.source.planning.query_plan import planned_ranges
from tailrace.spark.source.transports.segment_feed import CHUNK_BYTES, feed_range
from tailrace.spark.source.transports.transport import open_transport
from tests.support.batches import batch
from tests.support.column_rows import rows
from tests.support.golden import golden, golden_names
from tests.support.our_directory import consume, open_golden
from tests.support.small_logs import open_small
from tests.support.source_rows import offsets, plan, read, read_slices

NOW_MS = 1_700_000_100_000


def row_of(record: Record) -> dict[str, Any]:
    return {
        "OFFSET": record.offset,
        "TIMESTAMP": record.timestamp * 1000,
        "TIMESTAMP_TYPE": record.timestamp_type,
        "KEY": record.key,
        "VALUE": record.value,
        "HEADERS": [(header.key, header.value) for header in record.headers] or None,
    }


def bare(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{name: value for name, value in row.items() if name not in ("TOPIC", "PARTITION")} for row in rows]


@pytest.mark.parametrize("name", golden_names("data_dir"))
def test_the_source_returns_the_records_that_the_java_consumer_read(name: str, tmp_path: Path) -> None:
    path = str(golden(name).unpack(tmp_path))
    for expected in golden(name).manifest["partitions"]:
        chosen = {"path": path, "assign": f'{{"{expected["topic"]}": [{expected["partition"]}]}}'}
        found = read(chosen)
        plain = [
            [row["OFFSET"], row["TIMESTAMP"] // 1000, text(row["KEY"]), text(row["VALUE"]), headers(row["HEADERS"])]
            for row in found
        ]
        assert plain == expected["records"]
        committed = offsets(read({**chosen, "kafka.isolation.level": "read_committed"}))
        assert committed == [record[0] for record in expected["records"] if record[0] in expected["committed"]]


def text(data: bytes | None) -> str | None:
    return None if data is None else base64.b64encode(data).decode()


def headers(pairs: list[tuple[str, bytes | None]] | None) -> list[list[str | None]]:
    return [[text(key.encode()), text(value)] for key, value in pairs or []]


@pytest.mark.parametrize("name", golden_names("partition"))
def test_every_message_format_and_codec_is_read(name: str, tmp_path: Path) -> None:
    if name == "crashed-bad-crc":
        pytest.skip("what comes behind the damage is not read, and has its own test")
    log = open_golden(golden(name), golden(name).unpack(tmp_path / "opened") / "topic-0")
    log.advance_high_watermark(log.log_end_offset)
    path = golden(name).unpack(tmp_path / "data")
    start = golden(name).manifest["open"]["log_start_offset"]
    (path / "log-start-offset-checkpoint").write_text(f"0\n1\ntopic 0 {start}\n")
    for level, isolation in (("read_uncommitted", Isolation.LOG_END), ("read_committed", Isolation.READ_COMMITTED)):
        found = read({"path": str(path), "subscribe": "topic", "kafka.isolation.level": level})
        assert bare(found) == [row_of(record) for record in consume(log, isolation)]


@pytest.mark.parametrize("name", ["rolls", "codecs", "transactions", "message-format-v1", "compacted"])
def test_small_slices_give_the_same_rows(name: str, tmp_path: Path) -> None:
    path = str(golden(name).unpack(tmp_path))
    for level in ("read_uncommitted", "read_committed"):
        chosen = {"path": path, "subscribe": "topic", "kafka.isolation.level": level}
        whole = read(chosen)
        for size in ("1", "300", "2000"):
            slices = plan({**chosen, "maxBytesPerPartition": size})
            assert sorted(offsets(read_slices(slices))) == offsets(whole)
            assert len(slices) > 1 or size == "2000"
        assert read({**chosen, "maxRecordsPerPartition": "3"}) == whole


def test_slices_are_consecutive(tmp_path: Path) -> None:
    path = str(golden("codecs").unpack(tmp_path))
    ranges = [one.range for one in plan({"path": path, "subscribe": "topic", "minPartitions": "4"})]
    assert len(ranges) >= 4
    assert [one.end for one in ranges[:-1]] == [one.start for one in ranges[1:]]


@pytest.mark.parametrize("name", ["timestamps-out-of-order", "log-append-time", "rolls", "message-format-v0"])
def test_offsets_by_time_are_those_of_kafka(name: str, tmp_path: Path) -> None:
    path = str(golden(name).unpack(tmp_path))
    everything = read({"path": path, "subscribe": "topic"})
    for moment, expected in golden(name).manifest["expected"]["times"]:
        if moment < 0:
            continue
        found = read({
            "path": path,
            "subscribe": "topic",
            "startingTimestamp": str(moment),
            "startingOffsetsByTimestampStrategy": "latest",
        })  # fmt: skip
        first = expected[1] if expected else None
        assert found == [row for row in everything if first is not None and row["OFFSET"] >= first]


def test_a_narrow_query_by_offset_reads_one_slice(tmp_path: Path) -> None:
    path = str(golden("codecs").unpack(tmp_path))
    conditions = [Condition("offset", ">=", 30), Condition("offset", "<", 33)]
    slices = plan({"path": path, "subscribe": "topic"}, conditions)
    assert [one.range for one in slices] == [(TopicPartition("topic", 0), 30, 33)]
    assert offsets(read_slices(slices)) == [30, 31, 32]


def test_a_condition_on_time_starts_the_read_at_the_first_matching_record(tmp_path: Path) -> None:
    path = str(golden("timestamps-out-of-order").unpack(tmp_path))
    everything = read({"path": path, "subscribe": "topic"})
    times = sorted({row["TIMESTAMP"] for row in everything})
    for low in times[:: max(1, len(times) // 7)]:
        moment = datetime.fromtimestamp(low / 1e6, UTC)
        conditions = [Condition("timestamp", ">=", moment)]
        first = min(row["OFFSET"] for row in everything if row["TIMESTAMP"] >= low)
        assert plan({"path": path, "subscribe": "topic"}, conditions)[0].range.start <= first
        found = read({"path": path, "subscribe": "topic"}, conditions)
        assert found == [row for row in everything if row["TIMESTAMP"] >= low]


def test_other_topics_and_partitions_are_not_opened(tmp_path: Path) -> None:
    path = golden("codecs").unpack(tmp_path)
    (path / "other-0").mkdir()
    (path / "other-0" / "00000000000000000000.log").write_bytes(b"not a log at all")
    assert read({"path": str(path), "subscribe": "topic"})
    assert read({"path": str(path), "subscribePattern": "top.c"})
    assert read({"path": str(path), "subscribePattern": ".*"}, [Condition("topic", "=", "nothing")]) == []


def test_a_pattern_matches_whole_names_and_no_internal_topics(tmp_path: Path) -> None:
    path = golden("codecs").unpack(tmp_path)
    for name in ("__consumer_offsets-0", "topics-0", "my-topic-3"):
        shutil.copytree(path / "topic-0", path / name)
    found = {one.range.partition for one in plan({"path": str(path), "subscribePattern": "topic|__.*"})}
    assert found == {TopicPartition("topic", 0)}
    found = {one.range.partition for one in plan({"path": str(path), "subscribePattern": ".*topic.*"})}
    assert found == {TopicPartition("topic", 0), TopicPartition("topics", 0), TopicPartition("my-topic", 3)}
    assert plan({"path": str(path), "subscribe": "__consumer_offsets"})


def test_folders_marked_for_deletion_are_not_partitions(tmp_path: Path) -> None:
    path = golden("codecs").unpack(tmp_path)
    shutil.copytree(path / "topic-0", path / f"topic-1.{'0' * 32}-delete")
    assert {one.range.partition for one in plan({"path": str(path), "subscribe": "topic"})} == {("topic", 0)}


def test_missing_topics_and_partitions_are_reported(tmp_path: Path) -> None:
    path = str(golden("codecs").unpack(tmp_path))
    with pytest.raises(UnknownLog, match="there is no topic 'orders' in"):
        read({"path": path, "subscribe": "topic,orders"})
    with pytest.raises(UnknownLog, match="option assign names topic-4, which does not exist in"):
        read({"path": path, "assign": '{"topic": [0, 4]}'})
    with pytest.raises(Unreadable, match="no-such-place cannot be read: No such file"):
        read({"path": f"{path}/no-such-place", "subscribe": "topic"})
    (tmp_path / "empty").mkdir()
    with pytest.raises(Unreadable, match="empty is not a data directory"):
        read({"path": f"{tmp_path}/empty", "subscribe": "topic"})


def test_a_damaged_batch_is_reported_with_partition_offset_and_position(tmp_path: Path) -> None:
    path = golden("codecs").unpack(tmp_path)
    segment = sorted((path / "topic-0").glob("*.log"))[1]
    data = bytearray(segment.read_bytes())
    data[-1] ^= 1
    segment.write_bytes(data)
    with pytest.raises(DamagedLog) as caught:
        read({"path": str(path), "subscribe": "topic"})
    base = int(segment.stem)
    words = str(caught.value)
    assert words.startswith("topic-0 is damaged at offset ")
    assert int(words.split()[5]) >= base
    assert segment.name in words
    assert "checksum does not match" in words


def test_a_wrong_index_changes_only_the_cuts(tmp_path: Path) -> None:
    path = golden("codecs").unpack(tmp_path)
    whole = read({"path": str(path), "subscribe": "topic"})
    for index in (path / "topic-0").glob("*.index"):
        data = bytearray(index.read_bytes())
        for entry in range(0, len(data) - 16, 8):
            data[entry : entry + 4] = (int.from_bytes(data[entry : entry + 4], "big") + 1).to_bytes(4, "big")
        index.write_bytes(data)
    for size in ("100", "1000", "128m"):
        slices = plan({"path": str(path), "subscribe": "topic", "maxBytesPerPartition": size})
        assert read_slices(slices) == whole


def test_a_segment_deleted_by_retention_before_the_task_is_data_loss(tmp_path: Path) -> None:
    path = golden("codecs").unpack(tmp_path)
    slices = plan({"path": str(path), "subscribe": "topic"})
    everything = offsets(read_slices(slices))
    first, second = sorted((path / "topic-0").glob("*.log"))[:2]
    first.rename(f"{first}.deleted")
    start = int(second.stem)
    with pytest.raises(OffsetRangeLost, match=f"offsets 0 to {start - 1} of topic-0 are missing"):
        read_slices(slices)
    assert offsets(read_slices(slices, fail_on_data_loss=False)) == [one for one in everything if one >= start]


def test_a_half_finished_swap_is_read_from_the_new_segment(tmp_path: Path) -> None:
    path = golden("codecs").unpack(tmp_path)
    whole = read({"path": str(path), "subscribe": "topic"})
    slices = plan({"path": str(path), "subscribe": "topic"})
    for file in list((path / "topic-0").glob("00000000000000000041.*")):
        file.rename(f"{file}.swap")
    assert read_slices(slices) == whole


def test_a_swap_file_is_ignored_while_a_cleaned_file_exists(tmp_path: Path) -> None:
    path = golden("codecs").unpack(tmp_path)
    whole = read({"path": str(path), "subscribe": "topic"})
    folder = path / "topic-0"
    (folder / "00000000000000000041.log.swap").write_bytes(b"half of it")
    (folder / "00000000000000000000.log.cleaned").write_bytes(b"")
    slices = plan({"path": str(golden("codecs").unpack(tmp_path / "again")), "subscribe": "topic"})
    here = [replace(one, folder=str(folder)) for one in slices]
    assert read_slices(here) == whole


class SwappingFiles(DiskFiles):
    """Files that list a .swap file which is a segment when it is opened, with a changing or an equal listing."""

    def __init__(self, times: int, *, is_same: bool) -> None:
        self.times, self.is_same = times, is_same

    def entries(self, path: str) -> list[Entry]:
        self.times -= 1
        found = super().entries(path)
        if self.times >= 0:
            later = 10_000 if self.is_same else 10_000 + self.times
            found += [Entry(f"{0:020}.log.swap", False), Entry(f"{later:020}.log", False)]
        return found


def test_swaps_during_the_listing_of_a_task_are_tolerated(tmp_path: Path) -> None:
    path = golden("codecs").unpack(tmp_path)
    whole = read({"path": str(path), "subscribe": "topic"})
    slices = plan({"path": str(path), "subscribe": "topic"})

    def read_with(files: DiskFiles) -> Any:
        return read_slices([replace(one, files=files) for one in slices])

    assert read_with(SwappingFiles(30, is_same=False)) == whole
    assert read_with(SwappingFiles(2, is_same=True)) == whole
    with pytest.raises(Unreadable, match="was deleted"):
        read_with(SwappingFiles(30, is_same=True))
    with pytest.raises(Unreadable, match="was deleted"):
        read_with(SwappingFiles(10_000, is_same=False))


def test_a_topic_deleted_before_the_task_is_data_loss(tmp_path: Path) -> None:
    path = golden("codecs").unpack(tmp_path)
    slices = plan({"path": str(path), "subscribe": "topic"})
    shutil.rmtree(path / "topic-0")
    with pytest.raises(OffsetRangeLost, match="topic-0 has no segments"):
        read_slices(slices)
    assert read_slices(slices, fail_on_data_loss=False) == []


def test_a_truncated_log_is_data_loss(tmp_path: Path) -> None:
    path = golden("codecs").unpack(tmp_path)
    slices = plan({"path": str(path), "subscribe": "topic"})
    end = slices[-1].range.end
    last = sorted((path / "topic-0").glob("*.log"))[-1]
    last.unlink()
    with pytest.raises(OffsetRangeLost, match=rf"to {end - 1} of topic-0 are missing: the log in .* ends at"):
        read_slices(slices)


def test_no_record_is_lost_if_compaction_merges_segments_during_a_read(tmp_path: Path) -> None:
    path = golden("codecs").unpack(tmp_path)
    folder = path / "topic-0"
    slices = plan({"path": str(path), "subscribe": "topic"})
    whole = read_slices(slices)
    segments = sorted(folder.glob("*.log"))
    columns = RecordColumns(kernel.OFFSET, 0, slices[0].range.end, max_rows=1)
    found: list[int] = []
    for number, _ in enumerate(slices[0].feed(columns, fail_on_data_loss=True)):
        found += [row["OFFSET"] for row in rows(kernel, columns)]
        columns.reset()
        if number == 0:  # the first segment is open now; a cleaner replaces the first two by one
            merged = segments[0].read_bytes() + segments[1].read_bytes()
            (folder / "new").write_bytes(merged)
            (folder / "new").rename(segments[0])
            for index in folder.glob(f"{segments[0].stem}.*index"):
                index.unlink()
            for file in folder.glob(f"{segments[1].stem}.*"):
                file.unlink()
    found += [row["OFFSET"] for row in rows(kernel, columns)]
    assert found == offsets(whole)


def test_no_record_is_lost_if_compaction_merges_segments_during_planning(tmp_path: Path) -> None:
    path = golden("codecs").unpack(tmp_path)
    folder = path / "topic-0"
    options = read_options({"path": str(path), "subscribe": "topic", "maxBytesPerPartition": "300"}, is_stream=False)
    transport = open_transport(options)
    ranges = planned_ranges(transport, options, narrowing([]))  # the log is open now, but not all of its indexes
    segments = sorted(folder.glob("*.log"))
    whole = [log.read_bytes() for log in segments]
    segments[0].write_bytes(b"".join(whole[:-1]))
    for log in segments[:-1]:
        for file in folder.glob(f"{log.stem}.*"):
            if file != segments[0]:
                file.unlink()
    assert offsets(read_slices(transport.slices(ranges, options))) == list(range(ranges[0].end))


def test_a_batch_larger_than_a_chunk_is_read(tmp_path: Path) -> None:
    folder = tmp_path / "big-0"
    folder.mkdir()
    large = batch(b"x" * (CHUNK_BYTES + 5), base_offset=1)
    (folder / "00000000000000000000.log").write_bytes(batch(b"a") + large + batch(b"z", base_offset=2))
    found = read({"path": str(tmp_path), "subscribe": "big"})
    assert [len(row["VALUE"]) for row in found] == [1, CHUNK_BYTES + 5, 1]


def test_batches_across_two_chunks_are_read_once(tmp_path: Path) -> None:
    folder = tmp_path / "many-0"
    folder.mkdir()
    data = b"".join(batch(b"v" * 99_991, base_offset=number) for number in range(100))
    (folder / "00000000000000000000.log").write_bytes(data)
    assert offsets(read({"path": str(tmp_path), "subscribe": "many"})) == list(range(100))
    assert offsets(read({"path": str(tmp_path), "subscribe": "many", "startingOffsets": '{"many":{"0":57}}'}))[0] == 57


def test_records_before_the_log_start_offset_are_not_read(tmp_path: Path) -> None:
    path = golden("codecs").unpack(tmp_path)
    (path / "log-start-offset-checkpoint").write_text("0\n1\ntopic 0 25\n")
    assert offsets(read({"path": str(path), "subscribe": "topic"}))[0] == 25
    with pytest.raises(OffsetRangeLost, match="offsets 10 to 24 of topic-0 are missing: the log starts at 25"):
        read({"path": str(path), "subscribe": "topic", "startingOffsets": '{"topic": {"0": 10}}'})
    found = read({
        "path": str(path),
        "subscribe": "topic",
        "startingOffsets": '{"topic": {"0": 10}}',
        "failOnDataLoss": "false",
    })  # fmt: skip
    assert offsets(found)[0] == 25


def test_the_source_equals_the_plain_reader_from_every_offset(tmp_path: Path) -> None:
    path = golden("transactions").unpack(tmp_path)
    folder = PartitionFolder(str(path / "topic-0"), TopicPartition("topic", 0))
    offline = open_bounds(DiskFiles(), folder, NOW_MS)
    end = offline.log.log_end_offset
    for start in range(0, end, 3):
        expected = [row_of(one.record) for one in RecordReader(offline, Selection(from_offset=start), [].append)]
        chosen = {"path": str(path), "subscribe": "topic", "startingOffsets": f'{{"topic": {{"0": {start}}}}}'}
        assert bare(read(chosen)) == expected


class ReplacingFiles(DiskFiles):
    """Replaces a log file after its size was read, as compaction may."""

    def __init__(self, path: Path, content: bytes) -> None:
        self._path = path
        self._content: bytes | None = content

    def size(self, path: str) -> int:
        size = super().size(path)
        if path == str(self._path) and self._content is not None:
            other = self._path.with_suffix(".other")
            other.write_bytes(self._content)
            other.rename(self._path)
            self._content = None
        return size


def test_a_segment_that_is_replaced_while_it_is_opened_is_read_again(tmp_path: Path) -> None:
    folder = tmp_path / "t-0"
    folder.mkdir()
    log = open_small(DiskFiles(), {"index.interval.bytes": "100"}, folder=str(folder))
    batches = [batch((b"key", b"value %d" % number)) for number in range(60)]
    for one in batches:
        log.append_as_leader(bytearray(one), leader_epoch=0, now_ms=NOW_MS)
    log.close()
    (folder / f"{60:020}.log").touch()  # the active segment: compaction has removed all records before it
    wanted = OffsetRange(TopicPartition("t", 0), 50, 60)
    columns = RecordColumns(kernel.OFFSET, wanted.start, wanted.end)
    files = ReplacingFiles(folder / f"{0:020}.log", b"")
    for _ in feed_range(files, str(folder), wanted, columns, fail_on_data_loss=True):
        pass
    assert columns.rows == 0
