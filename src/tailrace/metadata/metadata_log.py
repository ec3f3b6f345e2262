"""MetadataLog: `__cluster_metadata-0` of a node that is its quorum's only voter.

    <log.dir>/__cluster_metadata-0/
        00000000000000000000.log …        batches of metadata records; a control batch at each epoch's start
        <end offset>-<epoch>.checkpoint   snapshots (`metadata_snapshot.py`)
        quorum-state                      the leader and its epoch
        leader-epoch-checkpoint, partition.metadata (topic id 00…01), as every log has them

Invariants
    1. The image is what the latest snapshot and the log after it say, up to the log's end.
    2. What `commit` has returned is durable: a crash loses at most changes that nobody was told of.
    3. One commit is one batch, or several inside a metadata transaction: it is there after a crash as a whole or not.
    4. Every start is a new epoch, noted in quorum-state before anything is written under it.

    open ──► begin_epoch ──► commit … commit ──► close
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tailrace.log.checkpoints import DirectoryIdentity
from tailrace.log.files import Files, join
from tailrace.log.partition_log import PartitionLog
from tailrace.log.recovery import open_log
from tailrace.metadata.delta import MetadataDelta
from tailrace.metadata.features import METADATA_VERSION, RecordVersions, record_versions
from tailrace.metadata.image import MetadataImage
from tailrace.metadata.loader import Change, MetadataLoader
from tailrace.metadata.metadata_snapshot import UnreadableSnapshot, read_snapshot
from tailrace.metadata.quorum_state import QUORUM_STATE, QuorumState
from tailrace.metadata.record_framing import build_control_batch, build_frames_batch, frames_of, in_batches
from tailrace.metadata.registrations import Endpoint, InconsistentMetadata
from tailrace.metadata.snapshot_store import SnapshotStore
from tailrace.metadata.storage_format import METADATA_FOLDER, METADATA_TOPIC_ID, local_voter
from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.model.ids import LeaderEpoch, Offset
from tailrace.model.topic_config import INT_MAX, TopicConfig
from tailrace.protocol import messages
from tailrace.protocol.message import Message
from tailrace.records.batch import (
    HEADER_SIZE,
    LENGTH_POSITION,
    LOG_OVERHEAD,
    MAGIC_POSITION,
    CorruptBatch,
    RecordBatch,
)
from tailrace.records.control import ControlValue, KRaftVersion, KRaftVoters, LeaderChange
from tailrace.records.validation import Origin

_log = logging.getLogger(__name__)

_READ_CHUNK = 4 * 1024 * 1024
_MAX_BATCH_BYTES = 8 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataLogSettings:
    """Kafka's metadata.log.* and metadata.max.* keys."""

    segment_bytes: int = 1024 * 1024 * 1024
    segment_ms: int = 7 * 86_400_000
    snapshot_after_bytes: int = 20 * 1024 * 1024
    snapshot_after_ms: int = 3_600_000
    retention_bytes: int = 100 * 1024 * 1024
    retention_ms: int = 7 * 86_400_000
    internal_segment_bytes: int | None = None  # small segments for tests


class MetadataLogFailed(KafkaError):
    """The disk failed under the metadata log: what was to be written may be there or not, and nothing may follow it."""

    def __init__(self, directory: str, error: OSError) -> None:
        super().__init__(ErrorCode.KAFKA_STORAGE_ERROR, f"the metadata log in {directory} has failed: {error}")


class NotTheOnlyVoter(Exception):
    """The directory belongs to a quorum that this node cannot lead alone."""


class MetadataLog:
    def __init__(
        self,
        files: Files,
        path: str,
        identity: DirectoryIdentity,
        settings: MetadataLogSettings | None = None,
        *,
        controller_endpoints: tuple[Endpoint, ...],
        now_ms: int,
    ) -> None:
        """Open the log in a formatted log directory and read it; nothing is written yet but repairs."""
        self.files = files
        self.path = path
        self.directory = join(path, METADATA_FOLDER)
        self.identity = identity
        self.controller_endpoints = controller_endpoints
        settings = settings or MetadataLogSettings()
        files.make_directory(self.directory)
        self.snapshots = SnapshotStore(files, self.directory, settings, now_ms)
        self.log = self._open_log(settings, now_ms)
        self.epoch: LeaderEpoch = -1
        self._failed: OSError | None = None
        loader = self._load()
        self.image = loader.image
        self.quorum = loader.quorum
        self.ends_in_transaction = loader.in_transaction

    def _open_log(self, settings: MetadataLogSettings, now_ms: int) -> PartitionLog:
        config = TopicConfig(
            max_message_bytes=_MAX_BATCH_BYTES,
            segment_bytes=settings.segment_bytes,
            internal_segment_bytes=settings.internal_segment_bytes,
            segment_ms=settings.segment_ms,
            retention_ms=-1,
            retention_bytes=-1,
        )
        latest = self.snapshots.latest
        log = open_log(
            self.files,
            self.directory,
            config,
            now_ms=now_ms,
            # What a snapshot contains was durable before: only what came after it can be torn.
            recovery_point=latest.end_offset if latest else 0,
            may_have_gaps=False,
            producer_expiration_ms=INT_MAX,
        )
        if log.topic_id is None:
            log.assign_topic_id(METADATA_TOPIC_ID)
        self.snapshots.settle(log, now_ms)
        return log

    def _load(self) -> MetadataLoader:
        image = MetadataImage(cluster_id=self.identity.cluster_id)
        loader = MetadataLoader(image)
        start = self.log.log_start_offset
        latest = self.snapshots.latest
        if latest is not None:
            path = join(self.directory, latest.file_name)
            try:
                snapshot = read_snapshot(self.files, path)
            except (CorruptBatch, InconsistentMetadata) as error:
                raise UnreadableSnapshot(path, error) from error
            delta = MetadataDelta(image)
            delta.replay_all(snapshot.records)
            start = latest.end_offset
            snapshot.quorum.voters_offset = start - 1
            if start > 0:
                image = delta.apply(
                    offset=start - 1, epoch=latest.epoch, timestamp_ms=snapshot.last_contained_timestamp
                )
            loader = MetadataLoader(image, snapshot.quorum)
        for batch in _batches(self.log, start):
            loader.feed(batch)
            self.snapshots.note_bytes(batch.size)
        loader.take()
        return loader

    @property
    def is_empty(self) -> bool:
        """No cluster has begun here yet: not even its features are known."""
        return not self.image.features

    # Writing

    def begin_epoch(self, now_ms: int) -> None:
        """Take the lead under a new epoch; NotTheOnlyVoter if others have a say in it."""
        path = join(self.directory, QUORUM_STATE)
        state = QuorumState.read(self.files, path) or QuorumState()
        voter = local_voter(self.identity.node_id, self.identity.directory_id, self.controller_endpoints)
        node_id = voter.voter_id
        known = self.quorum.voters
        ids = [one.voter_id for one in known] if self.quorum.kraft_version >= 1 else list(state.voters) or [node_id]
        if ids != [node_id]:
            raise NotTheOnlyVoter(f"{self.directory} belongs to the voters {ids}, not to {node_id} alone")
        if known and known[0].directory_id != voter.directory_id:
            raise NotTheOnlyVoter(f"{self.directory} is the copy of another directory of voter {node_id}")
        latest = self.log.epochs.latest
        self.epoch = max(state.leader_epoch, latest.epoch if latest else 0, self.image.epoch) + 1
        QuorumState(node_id, self.epoch).write(self.files, path, self.quorum.kraft_version)
        values: list[ControlValue] = [LeaderChange(0, node_id, (node_id,), (node_id,))]
        if self.quorum.kraft_version >= 1 and (self.quorum.voters_offset < 0 or known != (voter,)):
            # The log tells the voters itself, and where they are to be found by now.
            self.quorum.voters_offset = self.log.log_end_offset + len(values) + 1
            self.quorum.voters = (voter,)
            values += [KRaftVersion(0, self.quorum.kraft_version), KRaftVoters(0, (voter,))]
        self._append(
            build_control_batch(
                values, base_offset=self.log.log_end_offset, leader_epoch=self.epoch, timestamp_ms=now_ms
            ),
            now_ms,
        )
        self.image = MetadataDelta(self.image).apply(
            offset=self.log.log_end_offset - 1, epoch=self.epoch, timestamp_ms=now_ms
        )
        if self.ends_in_transaction:
            self._append_records([messages.AbortTransactionRecord(reason="a new epoch began")], now_ms)
            self.ends_in_transaction = False
        _log.info("epoch %d of the metadata log begins at offset %d", self.epoch, self.log.log_end_offset)

    def commit(
        self,
        records: Sequence[Message],
        now_ms: int,
        *,
        atomic: bool = True,
        flush: bool = True,
        transaction: str | None = None,
    ) -> Change:
        """Write records, make them durable, and give the image they make.

        `atomic=False` allows that a crash leaves the first of very many. `flush=False` leaves durability to the next
        commit. With a name they are a metadata transaction even where one batch is enough. A record that contradicts
        the image is an error here, before anything is written. MetadataLogFailed is the end: as in Kafka, a node does
        not live on without its metadata log.
        """
        assert self.epoch >= 0, "an epoch has to begin before something can be written"
        if self._failed is not None:
            raise MetadataLogFailed(self.directory, self._failed)
        delta = MetadataDelta(self.image)
        delta.replay_all(records)
        try:
            self._append_records(records, now_ms, atomic=atomic, transaction=transaction)
            if flush:
                self.flush(now_ms)
        except OSError as error:
            # Nobody can tell what of it is on disk, so nothing may follow it.
            self._failed = error
            raise MetadataLogFailed(self.directory, error) from error
        self.image = delta.apply(offset=self.log.log_end_offset - 1, epoch=self.epoch, timestamp_ms=now_ms)
        return Change(delta, self.image)

    @property
    def failure(self) -> OSError | None:
        """Why nothing can be written any more."""
        return self._failed

    def flush(self, now_ms: int) -> None:
        self.log.flush(now_ms)
        self.log.advance_high_watermark(self.log.log_end_offset)

    def _append_records(
        self, records: Sequence[Message], now_ms: int, *, atomic: bool = True, transaction: str | None = None
    ) -> None:
        # Levels first: a log that begins with them is written as they say.
        versions = self._record_versions(records)
        if transaction is not None and versions.has_transactions:
            begin = messages.BeginTransactionRecord(name=transaction)
            records = [begin, *records, messages.EndTransactionRecord()]
        groups = list(in_batches(frames_of(records, versions), _MAX_BATCH_BYTES // 2))
        if atomic and len(groups) > 1 and transaction is None:
            assert versions.has_transactions, f"{len(records)} records are too many for this metadata.version"
            begin, end = messages.BeginTransactionRecord(name=None), messages.EndTransactionRecord()
            groups = [[*frames_of([begin], versions)], *groups, [*frames_of([end], versions)]]
        for frames in groups:
            batch = build_frames_batch(
                frames, base_offset=self.log.log_end_offset, leader_epoch=self.epoch, timestamp_ms=now_ms
            )
            self._append(batch, now_ms)

    def _record_versions(self, records: Sequence[Message]) -> RecordVersions:
        if self.is_empty:
            for record in records:
                if record.SCHEMA.name == "FeatureLevelRecord" and getattr(record, "name", "") == METADATA_VERSION:
                    return record_versions(getattr(record, "feature_level", 0))
        return self.image.record_versions

    def _append(self, batch: bytes, now_ms: int) -> None:
        self.log.append_as_leader(batch, leader_epoch=self.epoch, now_ms=now_ms, origin=Origin.RAFT_LEADER)
        self.snapshots.note_bytes(len(batch))

    # Upkeep

    @property
    def next_offset(self) -> Offset:
        """The offset that the next record gets."""
        return self.log.log_end_offset

    def tick(self, now_ms: int) -> bool:
        """Do a part of what is due: a batch of a snapshot, removing what a snapshot has replaced. True: call again."""
        self.log.run_due(now_ms)
        return self.snapshots.step(self.log, self.image, self.quorum, now_ms)

    def write_snapshot(self, now_ms: int) -> None:
        """A snapshot of the image as it is, now and whole."""
        self.flush(now_ms)
        self.snapshots.begin(self.image, self.quorum, now_ms)
        while self.snapshots.is_writing:
            self.snapshots.step(self.log, self.image, self.quorum, now_ms)

    def next_deadline_ms(self) -> int | None:
        """When `tick` has something to do."""
        return self.snapshots.next_deadline_ms(self.log.deferred.next_due_ms)

    def close(self, now_ms: int) -> None:
        if self._failed is None:
            self.flush(now_ms)
            self.log.close()
        else:
            self.log.abandon()
        self.snapshots.abandon()

    def abandon(self) -> None:
        """Let go of everything without writing anything, as a crash would."""
        self.log.abandon()


def _batches(log: PartitionLog, start: Offset) -> Iterator[RecordBatch]:
    """The log's batches from an offset on."""
    while start < log.log_end_offset:
        found = log.read(start, _READ_CHUNK, at_least_one=True).slice
        if found is None:
            return
        before = start
        for batch in _whole_batches(found.read()):
            if batch.last_offset >= start:
                yield batch
                start = batch.last_offset + 1
        if start == before:
            raise CorruptBatch(f"no batch reaches offset {start}", path=found.file.path, position=found.position)


def _whole_batches(data: bytes) -> Iterator[RecordBatch]:
    """The batches in a piece of a log, whose last one may be cut off."""
    view = memoryview(data)
    position = 0
    while len(view) - position >= LOG_OVERHEAD:
        start = position + LENGTH_POSITION
        size = LOG_OVERHEAD + int.from_bytes(view[start : start + 4], "big")
        if size < HEADER_SIZE:
            raise CorruptBatch(f"a batch of {size} bytes in the metadata log")
        if position + size > len(view):
            return
        if view[position + MAGIC_POSITION] != 2:
            # What looks like one of another format has its offsets elsewhere, and would be followed to nowhere.
            raise CorruptBatch(f"a batch of format {view[position + MAGIC_POSITION]} in the metadata log")
        yield RecordBatch(view[position : position + size])
        position += size
