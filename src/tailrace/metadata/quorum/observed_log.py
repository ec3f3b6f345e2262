"""ObservedLog: `__cluster_metadata-0` of a node without a vote: a copy of the leader's log.

Its files are those that `metadata_log.py` describes, and those of Kafka's own brokers.

    append      batches as they were fetched, at their offsets; not synced, since the quorum has them
    truncate    removes what a former leader had written and nobody else has
    advance     what is below the leader's high watermark is committed, and only that goes into the image
    receive     a snapshot, in pieces, if the leader no longer has the offsets after this log's end

The image starts as the latest snapshot on disk. Later batches in the log are applied once a leader has reported that
they are committed. The node writes its own snapshots when they are due.
"""

from __future__ import annotations

import logging
from dataclasses import replace

from tailrace.log.disk.checkpoints import DirectoryIdentity
from tailrace.log.disk.files import File, Files, join
from tailrace.metadata.image.delta import MetadataDelta
from tailrace.metadata.image.image import MetadataImage
from tailrace.metadata.image.loader import Change, MetadataLoader, QuorumFacts
from tailrace.metadata.image.registrations import InconsistentMetadata
from tailrace.metadata.quorum.quorum_state import QUORUM_STATE, QuorumState
from tailrace.metadata.storage.log_opening import batches_from, load_snapshot, open_metadata_log
from tailrace.metadata.storage.metadata_log_settings import MetadataLogSettings
from tailrace.metadata.storage.metadata_snapshot import PARTIAL, SnapshotId, UnreadableSnapshot, read_snapshot
from tailrace.metadata.storage.snapshot_difference import difference_records
from tailrace.metadata.storage.snapshot_store import SnapshotStore
from tailrace.metadata.storage.storage_format import METADATA_FOLDER
from tailrace.model.ids import LeaderEpoch, Offset
from tailrace.model.shortage import SHORTAGE_RETRY_MS, is_shortage
from tailrace.protocol.errors import ProtocolError
from tailrace.records.batch import Buffer, CorruptBatch

_log = logging.getLogger(__name__)


class ObservedLog:
    def __init__(
        self,
        files: Files,
        path: str,
        identity: DirectoryIdentity,
        settings: MetadataLogSettings | None = None,
        *,
        now_ms: int,
    ) -> None:
        self.files = files
        self.path = path
        self.directory = join(path, METADATA_FOLDER)
        self.identity = identity
        files.make_directory(self.directory)
        settings = settings or MetadataLogSettings()
        self.snapshots = SnapshotStore(files, self.directory, settings, now_ms)
        self.log = open_metadata_log(files, self.directory, self.snapshots, settings, now_ms)
        self._loader, self._next = load_snapshot(files, self.directory, self.snapshots.latest, identity.cluster_id)
        self._next = max(self._next, self.log.log_start_offset)
        state = QuorumState.read(files, join(self.directory, QUORUM_STATE)) or QuorumState()
        self.epoch: LeaderEpoch = max(state.leader_epoch, self.last_epoch)
        self.leader_id = state.leader_id if self.epoch == state.leader_epoch else -1
        self.failure: OSError | None = None  # the error after which the log cannot be written
        self._partial: _PartialSnapshot | None = None
        self._rest_until_ms = 0  # maintenance pauses until then, after a lack of descriptors or memory

    @property
    def image(self) -> MetadataImage:
        return self._loader.image

    @property
    def quorum(self) -> QuorumFacts:
        return self._loader.quorum

    # Position

    @property
    def end_offset(self) -> Offset:
        return self.log.log_end_offset

    @property
    def last_epoch(self) -> LeaderEpoch:
        """The epoch of the last record. That record may be in a snapshot only."""
        latest = self.log.epochs.latest
        if latest is not None:
            return latest.epoch
        return self.snapshots.latest.epoch if self.snapshots.latest is not None else 0

    def note_leader(self, leader_id: int, epoch: LeaderEpoch) -> None:
        """Note and store the quorum's leader, or -1 if it is unknown."""
        if (leader_id, epoch) != (self.leader_id, self.epoch):
            self.leader_id, self.epoch = leader_id, epoch
            self._write_state()

    def _write_state(self) -> None:
        path = join(self.directory, QUORUM_STATE)
        QuorumState(self.leader_id, self.epoch).write(self.files, path, self.quorum.kraft_version)

    # From the leader

    def append(self, data: Buffer, now_ms: int) -> None:
        before = self.end_offset
        self.log.append_as_follower(data, leader_epoch=self.epoch, now_ms=now_ms)
        if self.end_offset > before:
            self.snapshots.note_bytes(len(data))

    def advance(self, high_watermark: Offset, now_ms: int) -> Change | None:
        """Read batches that are committed by now. Return the change of the image, or None."""
        end = min(high_watermark, self.end_offset)
        if end <= self._next:
            return None
        self.log.advance_high_watermark(end)
        kraft_version = self.quorum.kraft_version
        for batch in batches_from(self.log, self._next):
            if batch.last_offset >= end:
                break
            self._loader.feed(batch)
            self._next = batch.last_offset + 1
        if self.quorum.kraft_version != kraft_version:
            self._write_state()  # kraft.version determines the format of the file
        return self._loader.take()

    def truncate(self, epoch: LeaderEpoch, end_offset: Offset, now_ms: int) -> None:
        """Cut the log to the common part: the leader's log of that epoch ends at that offset."""
        ours = self.log.end_of_epoch(epoch)
        target = ours.end_offset if ours.end_offset >= 0 else end_offset
        if ours.epoch == epoch:
            target = min(target, end_offset)
        if target < self._next:
            raise InconsistentMetadata(
                f"the leader requests to cut the metadata log at offset {target}, but it is committed up to "
                f"{self._next}"
            )
        _log.info("cut the metadata log from offset %d to %d, as in the leader's log", self.end_offset, target)
        self.log.truncate_to(target, now_ms)

    # Snapshots from the leader

    def receive_snapshot(self, wanted: SnapshotId) -> bool:
        """Begin to receive a snapshot. Return False if it is here already."""
        self.drop_partial()
        if wanted in self.snapshots.ids:
            return False
        self._partial = _PartialSnapshot(self.files, self.directory, wanted)
        return True

    @property
    def receiving(self) -> tuple[SnapshotId, int] | None:
        """The snapshot that is being received, and the number of bytes so far."""
        return None if self._partial is None else (self._partial.id, self._partial.size)

    def add_to_snapshot(self, data: Buffer) -> None:
        assert self._partial is not None
        self._partial.add(data)

    def install_snapshot(self, now_ms: int) -> Change:
        """Use the received snapshot: the log continues after it, and everything that it does not have is removed."""
        assert self._partial is not None
        partial, self._partial = self._partial, None
        path = partial.finish()
        before = self.image
        described = MetadataDelta(MetadataImage(cluster_id=before.cluster_id))
        try:
            snapshot = read_snapshot(self.files, path, described.replay)
        except (CorruptBatch, InconsistentMetadata, ProtocolError) as error:
            self.files.remove(path)  # the next start must not find it
            raise UnreadableSnapshot(path, error) from error
        end_offset, epoch = partial.id
        delta = MetadataDelta(before)
        delta.replay_all(difference_records(before, described.apply(offset=0, epoch=0, timestamp_ms=0)))
        image = delta.apply(offset=end_offset - 1, epoch=epoch, timestamp_ms=snapshot.last_contained_timestamp)
        self.log.truncate_fully(end_offset, now_ms)
        self.snapshots.adopt(partial.id)
        self._loader = MetadataLoader(image, replace(snapshot.quorum, voters_offset=end_offset - 1))
        self._next = end_offset
        _log.info("installed snapshot %s of the metadata log from the leader", partial.id)
        return Change(delta, image)

    def fail(self, error: OSError) -> None:
        """Stop writing, after a disk error."""
        self.failure = error

    def drop_partial(self) -> None:
        if self._partial is not None:
            self._partial.abandon()
            self._partial = None

    # Upkeep

    def tick(self, now_ms: int) -> bool:
        """Do a part of the maintenance that is due. Return True if more is due."""
        if now_ms < self._rest_until_ms:
            return False
        try:
            self.log.run_due(now_ms)
            if self.snapshots.is_due(now_ms):
                self.log.flush(now_ms)  # a snapshot contains only durable records
        except OSError as error:
            if is_shortage(error):
                _log.warning("flush of the metadata log postponed: %s", error)
                self._rest_until_ms = now_ms + SHORTAGE_RETRY_MS
            else:
                self.failure = error
            return False
        return self.snapshots.step(self.log, self.image, self.quorum, now_ms)

    def next_deadline_ms(self) -> int | None:
        due_ms = self.snapshots.next_deadline_ms(self.log.deferred.next_due_ms)
        return None if due_ms is None else max(due_ms, self._rest_until_ms)

    def close(self, now_ms: int) -> None:
        self.drop_partial()
        self.snapshots.abandon()
        if self.failure is None:
            self.log.flush(now_ms)
            self.log.close()
        else:
            self.log.abandon()

    def abandon(self) -> None:
        """Release everything without writing, as a crash would."""
        self.log.abandon()


class _PartialSnapshot:
    """A snapshot that is being received."""

    def __init__(self, files: Files, directory: str, wanted: SnapshotId) -> None:
        self.id = wanted
        self.size = 0
        self._files = files
        self._directory = directory
        self._path = join(directory, f"{wanted}{PARTIAL}")
        files.remove(self._path)
        self._file: File = files.open(self._path, create=True)

    def add(self, data: Buffer) -> None:
        self._file.write(self.size, bytes(data))
        self.size += len(data)

    def finish(self) -> str:
        """Rename the complete file; return its path."""
        self._file.sync()
        self._file.close()
        path = join(self._directory, self.id.file_name)
        self._files.replace(self._path, path)
        self._files.sync_directory(self._directory)
        return path

    def abandon(self) -> None:
        self._file.close()
        self._files.remove(self._path)
