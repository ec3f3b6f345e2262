"""Records read offline equal those of the Java consumer, and reading continues after damage."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tailrace.log.directories.data_directory import PartitionFolder, read_data_directory
from tailrace.log.disk.files import DiskFiles
from tailrace.log.inspect.findings import Finding
from tailrace.log.inspect.offline import open_bounds, open_exact
from tailrace.log.inspect.offline_records import FoundRecord, RecordReader, Selection
from tailrace.log.watermarks import Isolation
from tests.support.command import write_directory
from tests.support.golden import golden, golden_names
from tests.support.our_directory import consume, open_golden, plain_record

NOW_MS = 1_700_000_100_000
COMMITTED = Isolation.READ_COMMITTED


def read(folder: PartitionFolder, findings: list[Finding] | None = None, **selection: Any) -> list[FoundRecord]:
    open_it = open_exact if selection.get("isolation") is COMMITTED else open_bounds
    offline = open_it(DiskFiles(), folder, NOW_MS)
    return list(RecordReader(offline, Selection(**selection), (findings if findings is not None else []).append))


def offsets(found: list[FoundRecord]) -> list[int]:
    return [one.record.offset for one in found]


def only_folder(path: Path) -> PartitionFolder:
    return read_data_directory(DiskFiles(), str(path)).folders[0]


@pytest.mark.parametrize("name", golden_names("data_dir"))
def test_the_records_equal_those_of_the_java_consumer(name: str, tmp_path: Path) -> None:
    path = golden(name).unpack(tmp_path)
    folders = {folder.partition: folder for folder in read_data_directory(DiskFiles(), str(path)).folders}
    for expected in golden(name).manifest["partitions"]:
        folder = folders[expected["topic"], expected["partition"]]
        assert [plain_record(one.record) for one in read(folder)] == expected["records"]
        committed = [one.record.offset for one in read(folder, isolation=COMMITTED)]
        assert committed == [record[0] for record in expected["records"] if record[0] in expected["committed"]]


@pytest.mark.parametrize("name", golden_names("partition"))
def test_records_of_every_format_and_codec_equal_those_of_the_log(name: str, tmp_path: Path) -> None:
    if name == "crashed-bad-crc":
        pytest.skip("reading continues after the damage; another test checks that")
    log = open_golden(golden(name), golden(name).unpack(tmp_path / "opened") / "topic-0")
    log.advance_high_watermark(log.log_end_offset)
    path = golden(name).unpack(tmp_path / "data") / "topic-0"
    folder = PartitionFolder(
        str(path), only_folder(path).partition, log_start_offset=golden(name).manifest["open"]["log_start_offset"]
    )
    assert [one.record for one in read(folder)] == consume(log, Isolation.LOG_END)
    assert [one.record for one in read(folder, isolation=COMMITTED)] == consume(log, COMMITTED)


def test_read_committed_is_exact_wherever_it_starts(tmp_path: Path) -> None:
    folder = only_folder(write_directory(tmp_path / "data", "transactions"))
    everything = read(folder, isolation=COMMITTED)
    assert len(everything) < len(read(folder))
    end = open_bounds(DiskFiles(), folder, NOW_MS).log.log_end_offset
    for start in range(end + 1):
        expected = [one for one in everything if one.record.offset >= start]
        assert read(folder, isolation=COMMITTED, from_offset=start) == expected


def test_a_selection_by_offset_or_time_returns_the_matching_records(tmp_path: Path) -> None:
    folder = only_folder(golden("timestamps-out-of-order").unpack(tmp_path))
    everything = read(folder)
    assert offsets(read(folder, from_offset=10, to_offset=20)) == list(range(10, 20))
    times = sorted({one.record.timestamp for one in everything})
    for time in times[::3]:
        late = [one for one in everything if one.record.timestamp >= time]
        assert read(folder, from_timestamp=time) == late
        early = [one for one in everything if one.record.timestamp < time]
        assert read(folder, to_timestamp=time) == early
    assert read(folder, from_timestamp=times[-1] + 1) == []


def test_the_last_segment_is_searched_even_if_its_time_index_is_behind(tmp_path: Path) -> None:
    path = write_directory(tmp_path / "data", "plain") / "plain-0"
    everything = read(only_folder(path))
    max(path.glob("*.timeindex")).write_bytes(b"")
    latest = max(one.record.timestamp for one in everything)
    assert [one.record.timestamp for one in read(only_folder(path), from_timestamp=latest)] == [latest]


def damaged(path: Path, position: int, new: bytes) -> Path:
    """Overwrite some bytes of the first segment. Return its path."""
    log = min(path.glob("*.log"))
    data = bytearray(log.read_bytes())
    data[position : position + len(new)] = new
    log.write_bytes(data)
    return log


def test_a_batch_with_a_wrong_checksum_is_skipped(tmp_path: Path) -> None:
    path = write_directory(tmp_path / "data", "plain") / "plain-0"
    everything = read(only_folder(path))
    first = everything[0].batch
    log = damaged(path, first.size + 70, b"\xff\xff")
    findings: list[Finding] = []
    lost = [one for one in everything if one.batch.position == first.size and one.record.offset < 100]
    assert offsets(read(only_folder(path), findings)) == offsets([one for one in everything if one not in lost])
    assert [(finding.path, finding.position) for finding in findings] == [(str(log), first.size)]
    assert "checksum" in findings[0].message


@pytest.mark.parametrize("length", [b"\x00\x00\x00\x10", b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff", b"\x00\x00\x02\x00"])
def test_a_wrong_length_loses_one_batch(length: bytes, tmp_path: Path) -> None:
    path = write_directory(tmp_path / "data", "plain") / "plain-0"
    everything = read(only_folder(path))
    first = everything[0].batch
    log = damaged(path, first.size + 8, length)
    findings: list[Finding] = []
    found = offsets(read(only_folder(path), findings))
    lost = [one.record.offset for one in everything if one.batch.position == first.size and one.record.offset < 100]
    assert found == [offset for offset in offsets(everything) if offset not in lost]
    assert [(finding.path, finding.position) for finding in findings] == [(str(log), first.size)]


@pytest.mark.parametrize("index", [b"\x7f" * 16, b"\xff" * 16, bytes.fromhex("0000000100000003")])
def test_a_wrong_index_loses_no_records(index: bytes, tmp_path: Path) -> None:
    path = write_directory(tmp_path / "data", "plain") / "plain-0"
    everything = read(only_folder(path))
    min(path.glob("*.index")).write_bytes(index)
    findings: list[Finding] = []
    assert offsets(read(only_folder(path), findings, from_offset=5)) == [n for n in offsets(everything) if n >= 5]


def test_a_segment_removed_during_the_read_is_reported_as_a_note(tmp_path: Path) -> None:
    path = write_directory(tmp_path / "data", "plain") / "plain-0"
    offline = open_bounds(DiskFiles(), only_folder(path), NOW_MS)
    bases = list(offline.log.segments.base_offsets)
    for segment in offline.log.segments:
        segment.release()
    (path / f"{bases[1]:020d}.log").unlink()
    findings: list[Finding] = []
    found = offsets(list(RecordReader(offline, Selection(), findings.append)))
    assert found[0] == 0
    assert not any(bases[1] <= offset < bases[2] for offset in found)
    assert found[-1] >= bases[-1]
    assert [finding.is_problem for finding in findings] == [False]
