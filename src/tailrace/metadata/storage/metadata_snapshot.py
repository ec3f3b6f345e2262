"""Snapshots: an image in a file, in batches like those of the log, so that the log before it can be deleted.

    <end offset, 20 digits>-<epoch, 10 digits>.checkpoint      everything before the end offset
    <the same>-….checkpoint.part                               being written; deleted at the next start
    <the same>.checkpoint.deleted                              waiting for removal

The content, with offsets of its own that count from zero:

    control batch    SnapshotHeader, then with kraft.version 1 KRaftVersion and KRaftVoters
    batches          the image's records
    control batch    SnapshotFooter; without it the file is incomplete

`bootstrap.checkpoint`, beside the partitions, has the same form: the feature levels of a new cluster.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import NamedTuple

from tailrace.log.disk.files import File, Files, join
from tailrace.metadata.image.features import RecordVersions, record_versions
from tailrace.metadata.image.image import MetadataImage
from tailrace.metadata.image.image_records import image_records
from tailrace.metadata.image.loader import QuorumFacts
from tailrace.metadata.image.registrations import InconsistentMetadata
from tailrace.metadata.storage.record_framing import build_batch, build_control_batch, records_in
from tailrace.model.ids import LeaderEpoch, Offset
from tailrace.protocol.message import Message
from tailrace.records.batch import split_batches
from tailrace.records.control_records import (
    ControlValue,
    KRaftVersion,
    KRaftVoters,
    SnapshotFooter,
    SnapshotHeader,
    parse_control,
)
from tailrace.records.record import iter_records

BOOTSTRAP_CHECKPOINT = "bootstrap.checkpoint"
CHECKPOINT = ".checkpoint"
PARTIAL = ".checkpoint.part"
DELETED = ".checkpoint.deleted"
_NAME = re.compile(r"([0-9]{20})-([0-9]{10}).*(\.checkpoint(?:\.part|\.deleted)?)")

RECORDS_PER_BATCH = 1000


class SnapshotId(NamedTuple):
    """The end offset of a snapshot, and the epoch of its last record."""

    end_offset: Offset
    epoch: LeaderEpoch

    @property
    def file_name(self) -> str:
        return f"{self}{CHECKPOINT}"

    def __str__(self) -> str:
        return f"{self.end_offset:020d}-{self.epoch:010d}"


FORMATTED = SnapshotId(0, 0)  # created by formatting; contains only the voters


def parse_name(name: str) -> tuple[SnapshotId, str] | None:
    """Return the id and suffix of a snapshot's file name, or None for another file."""
    match = _NAME.fullmatch(name)
    return (SnapshotId(int(match[1]), int(match[2])), match[3]) if match else None


@dataclass(slots=True)
class Snapshot:
    """The content of a snapshot file."""

    records: list[Message] = field(default_factory=list)  # empty if a `take` function got them
    quorum: QuorumFacts = field(default_factory=QuorumFacts)
    last_contained_timestamp: int = 0


def read_snapshot(files: Files, path: str, take: Callable[[Message], None] | None = None) -> Snapshot:
    """Read a snapshot. `take` gets the records, since a large snapshot has millions.

    CorruptBatch or InconsistentMetadata if the file is incomplete, which is only known at the end.
    """
    found = Snapshot()
    take = take or found.records.append
    is_whole = False
    for batch in split_batches(files.read(path)):
        batch.check()
        if not batch.is_control:
            for record in records_in(batch):
                take(record)
            continue
        for value in map(parse_control, iter_records(batch)):
            if isinstance(value, SnapshotHeader):
                found.last_contained_timestamp = value.last_contained_log_timestamp
            elif isinstance(value, KRaftVersion):
                found.quorum.note_version(value.kraft_version)
            elif isinstance(value, KRaftVoters):
                found.quorum.note_voters(value.voters, found.quorum.voters_offset)
            is_whole = isinstance(value, SnapshotFooter)
    if not is_whole:
        raise InconsistentMetadata(f"{path} has no footer: the snapshot is incomplete")
    return found


def read_header(files: Files, path: str) -> SnapshotHeader:
    """Read the header of a snapshot."""
    batch = next(split_batches(files.read(path)))
    header = parse_control(next(iter_records(batch)))
    if not isinstance(header, SnapshotHeader):
        raise InconsistentMetadata(f"{path} does not begin with a header")
    return header


def snapshot_batches(
    records: Iterable[Message],
    versions: RecordVersions,
    *,
    quorum: QuorumFacts,
    epoch: LeaderEpoch,
    last_contained_timestamp: int,
    now_ms: int,
) -> Iterator[bytes]:
    """Yield the batches of the file."""
    header: list[ControlValue] = [SnapshotHeader(0, last_contained_timestamp)]
    if quorum.kraft_version >= 1:
        header.append(KRaftVersion(0, quorum.kraft_version))
        if quorum.voters:
            header.append(KRaftVoters(0, quorum.voters))
    yield build_control_batch(header, base_offset=0, leader_epoch=epoch, timestamp_ms=now_ms)
    offset = len(header)
    remaining = iter(records)
    while chunk := list(islice(remaining, RECORDS_PER_BATCH)):
        yield build_batch(chunk, versions, base_offset=offset, leader_epoch=epoch, timestamp_ms=now_ms)
        offset += len(chunk)
    yield build_control_batch([SnapshotFooter(0)], base_offset=offset, leader_epoch=epoch, timestamp_ms=now_ms)


def write_snapshot_file(files: Files, path: str, batches: Iterable[bytes]) -> None:
    """Write a small snapshot in one step."""
    files.write(path + ".part", b"".join(batches), sync=True)
    files.replace(path + ".part", path)
    files.sync_directory(path.rpartition("/")[0])


class SnapshotWriter:
    """Writes an image to a snapshot one batch at a time, so that a large one blocks nobody."""

    def __init__(self, files: Files, directory: str, image: MetadataImage, quorum: QuorumFacts, now_ms: int) -> None:
        self.id = SnapshotId(image.offset + 1, image.epoch)
        self._files = files
        self._directory = directory
        self._path = join(directory, f"{self.id}-0{PARTIAL}")
        self._batches = snapshot_batches(
            image_records(image),
            record_versions(image.metadata_version),
            quorum=QuorumFacts(quorum.kraft_version, quorum.voters),
            epoch=image.epoch,
            last_contained_timestamp=image.timestamp_ms,
            now_ms=now_ms,
        )
        files.remove(self._path)
        self._file: File = files.open(self._path, create=True)
        self._size = 0

    def step(self) -> bool:
        """Write the next batch. Return True when the file is complete and has its final name."""
        batch = next(self._batches, None)
        if batch is not None:
            self._file.write(self._size, batch)
            self._size += len(batch)
            return False
        self._file.sync()
        self._file.close()
        self._files.replace(self._path, join(self._directory, self.id.file_name))
        self._files.sync_directory(self._directory)
        return True

    def abandon(self) -> None:
        self._file.close()
        self._files.remove(self._path)


class UnreadableSnapshot(Exception):
    """A snapshot that is needed and cannot be read."""

    def __init__(self, path: str, error: Exception) -> None:
        super().__init__(f"{path}: {error}")
