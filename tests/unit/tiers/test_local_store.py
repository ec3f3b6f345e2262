"""The folder of LocalTieredStorage: what we write, Kafka's own class reads, and the other way round."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from tailrace.log.disk.files import DiskFiles
from tailrace.tiers.remote_segment import RemoteSegment
from tailrace.tiers.stores.local_store import LocalStore
from tailrace.tiers.stores.remote_store import (
    IndexKind,
    RemoteResourceNotFound,
    RemoteStorageError,
    SegmentFiles,
)
from tests.support.faulty_files import FaultyFiles
from tests.support.local_tiered_storage import KafkaTier
from tests.support.log_oracle import LogOracle
from tests.support.oracle_types import OracleError
from tests.support.small_logs import append, end_transaction, open_small, replicate
from tests.support.tiered_logs import (
    described,
    epochs_of,
    files_of_segment,
    sealed_segments,
    segment_id,
)

FILES = DiskFiles()


class Clock:
    def __init__(self) -> None:
        self.now_ms = 1_000

    def __call__(self) -> int:
        return self.now_ms


@pytest.fixture
def sources(tmp_path: Path) -> list[tuple[RemoteSegment, SegmentFiles]]:
    """Return three sealed segments of a log. The second one has an aborted transaction."""
    folder = str(tmp_path / "data" / "topic-0")
    FILES.make_directory(folder)
    log = open_small(FILES, {"index.interval.bytes": "100"}, folder=folder)
    for part in range(3):
        for number in range(20):
            append(log, f"{part} {number}".encode() * 10, leader_epoch=part // 2)
        if part == 1:
            append(log, b"aborted", producer_id=7, producer_epoch=0, sequence=0, transactional=True)
            end_transaction(log, 7, commit=False)
        replicate(log)
        log.roll(2)
    for segment in log.segments:
        segment.flush()
    epochs = epochs_of(FILES, folder)
    made = [
        (described(one, end, segment_id(number), epochs), files_of_segment(FILES, folder, one, end, epochs))
        for number, (one, end) in enumerate(sealed_segments(log), 1)
    ]
    assert [files.transaction_index is not None for _, files in made] == [False, True, False]
    return made


def contents(directory: Path) -> dict[str, bytes]:
    return {str(one.relative_to(directory)): one.read_bytes() for one in directory.rglob("*") if one.is_file()}


def test_files_have_the_names_of_local_tiered_storage(
    tmp_path: Path, sources: list[tuple[RemoteSegment, SegmentFiles]]
) -> None:
    store = LocalStore(str(tmp_path / "tier"), FILES, Clock())
    segment, files = sources[1]
    assert store.copy_segment(segment, files, 60_000) is None
    stem = f"kafka-tiered-storage/topic-0-{segment.segment_id.topic_id}/{20:020d}-{segment.segment_id.text}"
    kinds = (".log", ".index", ".timeindex", ".txnindex", ".leader_epoch_checkpoint", ".snapshot")
    assert sorted(contents(tmp_path / "tier")) == sorted(f"{stem}{kind}" for kind in kinds)


def test_a_segment_is_read_in_ranges(tmp_path: Path, sources: list[tuple[RemoteSegment, SegmentFiles]]) -> None:
    store = LocalStore(str(tmp_path / "tier"), FILES, Clock())
    segment, files = sources[0]
    store.copy_segment(segment, files, 60_000)
    whole = Path(files.log).read_bytes()
    assert store.fetch_segment(segment, 0) == whole
    assert store.fetch_segment(segment, 10, 50) == whole[10:50]
    assert store.fetch_segment(segment, len(whole) - 3, len(whole) + 100) == whole[-3:]
    with pytest.raises(RemoteResourceNotFound, match="txnindex"):
        store.fetch_index(segment, IndexKind.TRANSACTION)
    with pytest.raises(RemoteResourceNotFound, match="there is no remote segment"):
        store.fetch_segment(sources[2][0], 0)


def test_deleting_a_segment_twice_is_not_an_error(
    tmp_path: Path, sources: list[tuple[RemoteSegment, SegmentFiles]]
) -> None:
    store = LocalStore(str(tmp_path / "tier"), FILES, Clock())
    for segment, files in sources[:2]:
        store.copy_segment(segment, files, 60_000)
    store.delete_segment(sources[0][0])
    store.delete_segment(sources[0][0])
    left = contents(tmp_path / "tier")
    assert len(left) == 6
    assert all(f"/{20:020d}-" in name for name in left)


def test_a_copy_ends_when_its_time_is_over(tmp_path: Path, sources: list[tuple[RemoteSegment, SegmentFiles]]) -> None:
    clock = Clock()

    class SlowFiles(DiskFiles):
        def open(self, path: str, *, create: bool = False, read_only: bool = False):  # type: ignore[no-untyped-def]
            clock.now_ms += 400
            return super().open(path, create=create, read_only=read_only)

    store = LocalStore(str(tmp_path / "tier"), SlowFiles(), clock)
    with pytest.raises(RemoteStorageError, match="is not complete after 1,000 ms"):
        store.copy_segment(*sources[0], 1_000)
    store.delete_segment(sources[0][0])
    assert contents(tmp_path / "tier") == {}


def test_an_error_of_the_disk_names_the_file(tmp_path: Path, sources: list[tuple[RemoteSegment, SegmentFiles]]) -> None:
    files = FaultyFiles(FILES)
    store = LocalStore(str(tmp_path / "tier"), files, Clock())
    files.fail("write", errno.ENOSPC, path=".timeindex")
    with pytest.raises(RemoteStorageError, match=r"cannot be copied: .*\.timeindex"):
        store.copy_segment(*sources[0], 60_000)


@pytest.mark.kafka
def test_kafka_reads_and_deletes_what_we_copied(
    tmp_path: Path, log_oracle: LogOracle, sources: list[tuple[RemoteSegment, SegmentFiles]]
) -> None:
    ours = LocalStore(str(tmp_path / "tier"), FILES, Clock())
    kafka = KafkaTier(log_oracle, tmp_path / "tier")
    for segment, files in sources:
        ours.copy_segment(segment, files, 60_000)
    assert kafka.all_segments() == sorted(segment.segment_id.text for segment, _ in sources)
    for segment, files in sources:
        assert kafka.fetch_segment(segment, 5, segment.size) == Path(files.log).read_bytes()[5:]
        for kind in IndexKind:
            if kind is not IndexKind.TRANSACTION or files.transaction_index:
                assert kafka.fetch_index(segment, kind) == ours.fetch_index(segment, kind)
            else:
                with pytest.raises(OracleError):
                    kafka.fetch_index(segment, kind)
    kafka.delete_segment(sources[0][0])
    with pytest.raises(RemoteResourceNotFound):
        ours.fetch_segment(sources[0][0], 0)


@pytest.mark.kafka
def test_we_read_and_delete_what_kafka_copied(
    tmp_path: Path, log_oracle: LogOracle, sources: list[tuple[RemoteSegment, SegmentFiles]]
) -> None:
    kafka = KafkaTier(log_oracle, tmp_path / "kafka")
    theirs = LocalStore(str(tmp_path / "kafka"), FILES, Clock())
    ours = LocalStore(str(tmp_path / "ours"), FILES, Clock())
    for segment, files in sources:
        kafka.copy_segment(segment, files)
        ours.copy_segment(segment, files, 60_000)
    assert contents(tmp_path / "kafka") == contents(tmp_path / "ours")
    for segment, files in sources:
        assert theirs.fetch_segment(segment, 0) == Path(files.log).read_bytes()
        assert theirs.fetch_index(segment, IndexKind.LEADER_EPOCH) == files.leader_epochs
        theirs.delete_segment(segment)
    assert contents(tmp_path / "kafka") == {}
    assert kafka.all_segments() == []
