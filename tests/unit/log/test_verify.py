"""Verify finds what is wrong, names its place, and goes on to the rest."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from tailrace.log.directories.data_directory import PartitionFolder, read_data_directory
from tailrace.log.disk.files import DiskFile, DiskFiles
from tailrace.log.inspect.verify import PartitionResult, log_bytes, verify_directory, verify_partition
from tailrace.log.producers.producer_snapshot import SnapshotEntry, decode_snapshot, encode_snapshot
from tailrace.records.codecs.crc32c import crc32c
from tests.support.batches import batch
from tests.support.command import contents, write_directory
from tests.support.golden import golden, golden_names
from tests.support.our_workload import KINDS

FILES = DiskFiles()
DAMAGED = {
    "crashed-bad-crc": "checksum",
    "crashed-preallocated": "torn tail",
    "crashed-torn-tail": "torn tail",
    "crashed-zero-tail": "torn tail",
    "crashed-without-indexes": "is missing",
    "offset-overflow": "too far",
}


def verify(path: Path, *, deep: bool = True, is_clean: bool | None = None) -> PartitionResult:
    folder = read_data_directory(FILES, str(path)).folders[0]
    if is_clean is not None:
        folder = PartitionFolder(folder.path, folder.partition, is_clean=is_clean)
    return verify_partition(FILES, folder, deep=deep)


def reported(result: PartitionResult) -> list[str]:
    return [f"{Path(finding.path).name} {finding.position}: {finding.message}" for finding in result.problems]


@pytest.mark.parametrize("name", golden_names("partition"))
def test_directories_of_kafka_have_no_findings(name: str, tmp_path: Path) -> None:
    path = golden(name).unpack(tmp_path)
    before = contents(tmp_path)
    result = verify(path, is_clean=golden(name).manifest["ended"] == "clean")
    if name in DAMAGED:
        assert DAMAGED[name] in " ".join(reported(result))
    else:
        assert reported(result) == []
    assert contents(tmp_path) == before


@pytest.mark.parametrize("name", golden_names("partition"))
def test_directories_recovered_by_kafka_have_no_findings(name: str, tmp_path: Path) -> None:
    if golden(name).manifest["ended"] != "crashed":
        pytest.skip("not crashed")
    assert reported(verify(golden(name).unpack(tmp_path, "recovered"))) == []


@pytest.mark.parametrize("name", golden_names("data_dir"))
def test_the_directory_of_a_broker_has_no_findings(name: str, tmp_path: Path) -> None:
    directory = read_data_directory(FILES, str(golden(name).unpack(tmp_path)))
    results = [verify_partition(FILES, folder, deep=True) for folder in directory.folders]
    assert [line for result in results for line in reported(result)] == []
    assert verify_directory(directory, results) == []


@pytest.mark.parametrize("clean", [True, False])
def test_our_own_log_has_no_findings_and_is_read_completely(clean: bool, tmp_path: Path) -> None:
    directory = read_data_directory(FILES, str(write_directory(tmp_path / "data", clean=clean)))
    assert {folder.partition.topic for folder in directory.folders} == set(KINDS)
    for folder in directory.folders:
        seen: list[int] = []
        result = verify_partition(FILES, folder, deep=True, advance=seen.append)
        assert reported(result) == []
        assert sum(seen) == result.size == log_bytes(FILES, folder) > 0
        assert result.records > 0
        assert result.end_offset == folder.high_watermark


class Partition:
    """A partition to be damaged: the files of its first segment, and where its batches start."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.log = min(path.glob("*.log"))
        self.starts: list[int] = []
        data = self.log.read_bytes()
        position = 0
        while position < len(data):
            self.starts.append(position)
            position += struct.unpack_from(">i", data, position + 8)[0] + 12

    def first(self, kind: str) -> Path:
        return self.log.with_suffix(f".{kind}")

    def change(self, file: Path, position: int, new: bytes) -> None:
        data = bytearray(file.read_bytes())
        data[position : position + len(new)] = new
        file.write_bytes(data)


@pytest.fixture
def partition(tmp_path: Path) -> Partition:
    return Partition(write_directory(tmp_path / "data", "transactions") / "transactions-0")


def test_every_flipped_byte_of_a_batch_is_found(partition: Partition) -> None:
    """Whichever byte it is, something is wrong with that batch or with what points to it."""
    start, end = partition.starts[1], partition.starts[2]
    original = partition.log.read_bytes()
    for position in range(start, end):
        partition.change(partition.log, position, bytes([original[position] ^ 0x41]))
        found = reported(verify(partition.path, deep=False))
        partition.log.write_bytes(original)
        assert found, f"byte {position - start} of the batch"


def test_damage_is_reported_with_its_position_and_later_batches_are_checked(partition: Partition) -> None:
    partition.change(partition.log, partition.starts[1] + 65, b"\xff\x00\xff")
    partition.change(partition.log, partition.starts[4] + 65, b"\xff\x00\xff")
    result = verify(partition.path)
    assert [line for line in reported(result) if partition.log.name in line and "checksum" in line] == [
        line
        for line in reported(result)
        if line.startswith(tuple(f"{partition.log.name} {partition.starts[n]}: " for n in (1, 4)))
    ]
    assert len(result.segments) == len(list(partition.path.glob("*.log")))
    assert result.segments[0].damaged_at == partition.starts[1]


def test_batches_after_a_batch_with_a_wrong_length_are_verified(partition: Partition) -> None:
    partition.change(partition.log, partition.starts[2] + 8, b"\x00\x10\x00\x00")
    result = verify(partition.path)
    assert result.segments[0].batches == len(partition.starts) - 1
    assert result.segments[0].damaged_bytes == partition.starts[3] - partition.starts[2]


def test_offsets_that_go_back_are_found(partition: Partition) -> None:
    partition.change(partition.log, partition.starts[2], struct.pack(">q", 0))
    assert any("offsets go back" in line for line in reported(verify(partition.path)))


def test_a_segment_that_starts_before_the_last_one_ends_is_found(partition: Partition) -> None:
    bases = sorted(int(path.stem) for path in partition.path.glob("*.log"))
    for path in list(partition.path.glob(f"{bases[1]:020d}.*")):
        path.rename(path.with_name(f"{bases[1] - 1:020d}{path.suffix}"))
    assert any(f"the segment before ends at {bases[1]}" in line for line in reported(verify(partition.path)))


def test_a_torn_tail_is_not_reported_as_damage(partition: Partition) -> None:
    last = max(partition.path.glob("*.log"))
    size = last.stat().st_size
    with open(last, "ab") as log:
        log.write(bytes(batch(b"torn", base_offset=10_000))[:-3])
    result = verify(partition.path)
    assert [line.split(":")[1].strip() for line in reported(result)] == ["torn tail"]
    assert result.segments[-1].torn_at == size
    assert not result.segments[-1].is_damaged


def test_records_are_verified_only_with_deep(partition: Partition) -> None:
    """A largest timestamp that no record has, under a checksum that holds."""
    data = bytearray(batch(b"a", b"b", timestamp=[1_700_000_000_000, 1_700_000_000_001], base_offset=0))
    struct.pack_into(">q", data, 35, 1_800_000_000_000)
    struct.pack_into(">I", data, 17, crc32c(data[21:]))
    folder = partition.path.with_name("made-0")
    folder.mkdir()
    (folder / "00000000000000000000.log").write_bytes(data)
    for kind in ("index", "timeindex"):
        (folder / f"00000000000000000000.{kind}").touch()
    assert reported(verify(folder, deep=False, is_clean=False)) == []
    assert any("largest timestamp" in line for line in reported(verify(folder, deep=True, is_clean=False)))


INDEX_DAMAGE: list[tuple[str, Callable[[Partition], None], str]] = [
    ("index", lambda p: p.first("index").unlink(), "is missing"),
    ("index", lambda p: p.change(p.first("index"), 0, b"\x00\x00\x00\x01"), "but the batch there ends with offset"),
    ("index", lambda p: p.change(p.first("index"), 4, struct.pack(">i", p.starts[2] + 1)), "middle of a batch"),
    ("index", lambda p: p.first("index").write_bytes(b"\x7f\xff\xff\xff\x7f\xff\xff\xff"), "beyond the end"),
    ("index", lambda p: p.first("index").write_bytes(b"\x01" * 16), "is not above"),
    ("index", lambda p: p.first("index").write_bytes(b"\x01" * 13), "not a multiple"),
    ("timeindex", lambda p: p.first("timeindex").unlink(), "is missing"),
    ("timeindex", lambda p: p.first("timeindex").write_bytes(b""), "lookups by time skip the segment"),
    ("timeindex", lambda p: p.change(p.first("timeindex"), 0, bytes(8)), "but the largest is"),
    ("timeindex", lambda p: p.first("timeindex").write_bytes(b"\x01" * 7), "not a multiple"),
    (
        "timeindex",
        lambda p: p.change(p.first("timeindex"), 8, b"\x7f\xff\xff\xff"),
        "is not above|but the log's last",
    ),
    ("txnindex", lambda p: p.first("txnindex").unlink(), "lacks the aborted transaction"),
    ("txnindex", lambda p: p.change(p.first("txnindex"), 2, struct.pack(">q", 77)), "has producer 77"),
    ("txnindex", lambda p: p.change(p.first("txnindex"), 0, b"\x00\x09"), "unknown entry version 9"),
]


@pytest.mark.parametrize(("kind", "damage", "message"), INDEX_DAMAGE, ids=[f"{k}: {m}" for k, _, m in INDEX_DAMAGE])
def test_wrong_indexes_are_found(
    kind: str, damage: Callable[[Partition], None], message: str, partition: Partition
) -> None:
    damage(partition)
    result = verify(partition.path)
    assert result.problems
    assert all(Path(finding.path).suffix == f".{kind}" for finding in result.problems), reported(result)
    assert any(part in line for line in reported(result) for part in message.split("|")), reported(result)
    assert [segment.are_indexes_wrong for segment in result.segments] == [True] + [False] * (len(result.segments) - 1)


def test_every_changed_field_of_a_snapshot_is_found(partition: Partition) -> None:
    file = max(partition.path.glob("*.snapshot"))
    original = file.read_bytes()
    entries = decode_snapshot(original, str(file))
    assert entries
    for name in SnapshotEntry._fields[1:]:
        changed = entries[0]._replace(**{name: getattr(entries[0], name) + 5})
        file.write_bytes(encode_snapshot([changed, *entries[1:]]))
        assert any(name.replace("_", " ") in line for line in reported(verify(partition.path))), name
    file.write_bytes(encode_snapshot(entries[:-1]))
    assert any("open since offset" in line for line in reported(verify(partition.path)))
    file.write_bytes(encode_snapshot([*entries, entries[0]._replace(producer_id=4711)]))
    assert any("producer 4711, which has no records" in line for line in reported(verify(partition.path)))
    file.write_bytes(original[:-1] + b"\xff")
    assert any("checksum" in line for line in reported(verify(partition.path)))


def test_wrong_leader_epochs_are_found(tmp_path: Path) -> None:
    path = golden("leader-epochs").unpack(tmp_path) / "topic-0"
    file = path / "leader-epoch-checkpoint"
    lines = file.read_text().splitlines()
    assert lines[3] == "1 12"
    file.write_text("\n".join([*lines[:3], "1 14", *lines[4:]]) + "\n")
    result = verify(path)
    assert result.are_epochs_wrong
    assert ["has epoch 0 for offset 12" in line for line in reported(result)] == [True]
    file.write_text("0\n1\n0 100000\n")
    assert any("after the log end" in line for line in reported(verify(path)))
    file.write_text("nonsense")
    assert any("unknown version" in line for line in reported(verify(path)))
    file.unlink()
    assert reported(verify(path)) == []


def test_partitions_of_a_topic_agree_on_its_id(tmp_path: Path) -> None:
    path = golden("broker-clean").unpack(tmp_path)
    (path / "orders-1" / "partition.metadata").write_text("version: 0\ntopic_id: AAAAAAAAQACAAAAAAAAAAQ")
    directory = read_data_directory(FILES, str(path))
    results = [verify_partition(FILES, folder) for folder in directory.folders]
    assert ["has topic id" in finding.message for finding in verify_directory(directory, results)] == [True]


def test_a_log_without_any_segment_is_a_note(tmp_path: Path) -> None:
    folder = tmp_path / "topic-0"
    folder.mkdir()
    (folder / "partition.metadata").write_text("version: 0\ntopic_id: AAAAAAAAQACAAAAAAAAAAQ")
    result = verify(folder)
    assert reported(result) == []
    assert [finding.message for finding in result.findings] == ["has no segment"]


class GrowingFile(DiskFile):
    """A log file that grows after each query of its size."""

    __slots__ = ("more",)

    def size(self) -> int:
        size = super().size()
        with open(self.path, "ab") as log:
            log.write(self.more)
        self.more = b""
        return size


class GrowingFiles(DiskFiles):
    def __init__(self, path: str, more: bytes) -> None:
        self.path, self.more = path, more

    def open(self, path: str, *, create: bool = False, read_only: bool = False) -> DiskFile:
        if path != self.path:
            return super().open(path, create=create, read_only=read_only)
        file = GrowingFile(path, super().open(path, read_only=True)._flags)
        file.more = self.more
        return file


def test_a_batch_that_is_being_written_is_not_a_torn_tail(partition: Partition) -> None:
    last = max(partition.path.glob("*.log"))
    end = verify(partition.path).end_offset
    data = bytes(batch(b"late", base_offset=end, timestamp=1_600_000_000_000, leader_epoch=0))
    with open(last, "ab") as log:
        log.write(data[:70])
    result = verify_partition(
        GrowingFiles(str(last), data[70:]), read_data_directory(FILES, str(partition.path)).folders[0]
    )
    assert reported(result) == []
    assert result.end_offset == end + 1
