"""MetadataLog: `__cluster_metadata-0` of a node that is its quorum's only voter.

    <log.dir>/__cluster_metadata-0/
        00000000000000000000.log …        batches of metadata records; a control batch at each epoch's start
        <end offset>-<epoch>.checkpoint   snapshots (`metadata_snapshot.py`)
        quorum-state                      the leader and its epoch
        leader-epoch-checkpoint, partition.metadata (topic id 00…01), as every log has them

Invariants
    1. The image is the latest snapshot plus the log after it, up to the log's end.
    2. What `commit` has returned is durable: a crash loses at most changes that nobody was notified of.
    3. One commit is one batch, or several inside a metadata transaction: after a crash it is there completely or not.
    4. Every start is a new epoch, stored in quorum-state before anything is written under it.

    open ──► begin_epoch ──► commit … commit ──► close

A commit of many records can be prepared in steps, with pauses: `prepare`, then `commit_prepared`.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import NamedTuple

from tailrace.log.disk.checkpoints import DirectoryIdentity
from tailrace.log.disk.files import Files, join
from tailrace.metadata.image.delta import MetadataDelta
from tailrace.metadata.image.features import METADATA_VERSION, RecordVersions, record_versions
from tailrace.metadata.image.image import MetadataImage
from tailrace.metadata.image.loader import Change, MetadataLoader
from tailrace.metadata.image.registrations import Endpoint
from tailrace.metadata.quorum.quorum_state import QUORUM_STATE, QuorumState
from tailrace.metadata.storage.log_opening import (
    MAX_BATCH_BYTES,
    batches_from,
    check_after_clean_stop,
    load_snapshot,
    open_metadata_log,
)
from tailrace.metadata.storage.metadata_log_settings import MetadataLogSettings
from tailrace.metadata.storage.record_framing import build_control_batch, build_frames_batch, frames_of, in_batches
from tailrace.metadata.storage.snapshot_store import SnapshotStore
from tailrace.metadata.storage.storage_format import METADATA_FOLDER, local_voter
from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.model.ids import LeaderEpoch, Offset
from tailrace.model.shortage import is_shortage
from tailrace.model.steps import ITEMS_PER_STEP, Steps, run_steps
from tailrace.protocol import messages
from tailrace.protocol.errors import UnwritableMessage
from tailrace.protocol.message import Message
from tailrace.records.checks.validation import Origin
from tailrace.records.control_records import ControlValue, KRaftVersion, KRaftVoters, LeaderChange

_log = logging.getLogger(__name__)


class MetadataLogFailed(KafkaError):
    """The disk failed under the metadata log: the change may be on disk or not, and nothing may be written after it."""

    def __init__(self, directory: str, error: OSError) -> None:
        super().__init__(ErrorCode.KAFKA_STORAGE_ERROR, f"the metadata log in {directory} has failed: {error}")


class MetadataLogShortage(MetadataLogFailed):
    """The process lacks descriptors or memory: the change was not made, and may be requested again."""


class NotTheOnlyVoter(Exception):
    """The directory belongs to a quorum that this node cannot lead alone."""


class PreparedCommit(NamedTuple):
    """Records that are replayed and encoded, and not yet written."""

    before: MetadataImage  # the image before the records
    delta: MetadataDelta
    versions: RecordVersions
    frames: list[bytes]


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
        """Open the log in a formatted log directory and read it. Nothing is written except repairs."""
        self.files = files
        self.path = path
        self.directory = join(path, METADATA_FOLDER)
        self.identity = identity
        self.controller_endpoints = controller_endpoints
        settings = settings or MetadataLogSettings()
        files.make_directory(self.directory)
        self.snapshots = SnapshotStore(files, self.directory, settings, now_ms)
        check_after_clean_stop(files, self.directory, self.snapshots.latest)
        self.log = open_metadata_log(files, self.directory, self.snapshots, settings, now_ms)
        self.epoch: LeaderEpoch = -1
        self._failed: OSError | None = None
        loader = self._load()
        self.image = loader.image
        self.quorum = loader.quorum
        self.ends_in_transaction = loader.in_transaction

    def _load(self) -> MetadataLoader:
        loader, start = load_snapshot(self.files, self.directory, self.snapshots.latest, self.identity.cluster_id)
        for batch in batches_from(self.log, max(start, self.log.log_start_offset)):
            loader.feed(batch)
            self.snapshots.note_bytes(batch.size)
        loader.take()
        return loader

    @property
    def is_empty(self) -> bool:
        """True if the log has no records of a cluster yet, not even its feature levels."""
        return not self.image.features

    # Writing

    def begin_epoch(self, now_ms: int) -> None:
        """Become the leader under a new epoch. Raise NotTheOnlyVoter if the quorum has other voters."""
        path = join(self.directory, QUORUM_STATE)
        state = QuorumState.read(self.files, path) or QuorumState()
        voter = local_voter(self.identity.node_id, self.identity.directory_id, self.controller_endpoints)
        node_id = voter.voter_id
        known = self.quorum.voters
        ids = [one.voter_id for one in known] if self.quorum.kraft_version >= 1 else list(state.voters) or [node_id]
        if ids != [node_id]:
            raise NotTheOnlyVoter(
                f"{self.directory} belongs to a quorum of the voters {ids}; node {node_id} cannot lead it alone"
            )
        if known and known[0].directory_id != voter.directory_id:
            raise NotTheOnlyVoter(
                f"{self.directory} is not the directory that voter {node_id} is registered with: it is a copy"
            )
        latest = self.log.epochs.latest
        self.epoch = max(state.leader_epoch, latest.epoch if latest else 0, self.image.epoch) + 1
        QuorumState(node_id, self.epoch).write(self.files, path, self.quorum.kraft_version)
        values: list[ControlValue] = [LeaderChange(0, node_id, (node_id,), (node_id,))]
        if self.quorum.kraft_version >= 1 and (self.quorum.voters_offset < 0 or known != (voter,)):
            # With this kraft.version the log contains the voters and their present addresses.
            self.quorum.note_voters((voter,), self.log.log_end_offset + len(values) + 1)
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
            abort = messages.AbortTransactionRecord(reason="a new epoch began")
            versions = self.image.record_versions
            self._append_frames(list(frames_of([abort], versions)), versions, now_ms)
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
        """Write records and make them durable; return the change of the image.

        `atomic=False`: a crash may leave only the first of very many records. `flush=False`: the next commit makes them
        durable. `transaction`: write a metadata transaction of that name, even if one batch is enough. A record that
        contradicts the image, or cannot be encoded, is an error before anything is written. After MetadataLogFailed
        the node must stop: as in Kafka, it cannot run without its metadata log. MetadataLogShortage: nothing was
        written.
        """
        prepared = run_steps(self.prepare(records), now_ms)
        return self.commit_prepared(prepared, now_ms, atomic=atomic, flush=flush, transaction=transaction)

    def prepare(self, records: Sequence[Message]) -> Steps[PreparedCommit]:
        """Replay and encode records. Nothing is written."""
        delta, versions = MetadataDelta(self.image), self._record_versions(records)
        prepared = PreparedCommit(self.image, delta, versions, [])
        for first in range(0, len(records), ITEMS_PER_STEP):
            if first:
                yield
            some = records[first : first + ITEMS_PER_STEP]
            delta.replay_all(some)
            try:
                prepared.frames.extend(frames_of(some, versions))
            except UnwritableMessage as error:
                reason = f"a metadata record cannot be written: {error}"
                raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, reason) from error
        return prepared

    def commit_prepared(
        self,
        prepared: PreparedCommit,
        now_ms: int,
        *,
        atomic: bool = True,
        flush: bool = True,
        transaction: str | None = None,
    ) -> Change:
        """Like `commit`. The image must be the one that the records were prepared for."""
        assert self.epoch >= 0, "begin_epoch was not called"
        assert prepared.before is self.image, "the image has changed since the records were prepared"
        if self._failed is not None:
            raise MetadataLogFailed(self.directory, self._failed)
        delta, end_offset = prepared.delta, self.log.log_end_offset
        try:
            self._append_frames(prepared.frames, prepared.versions, now_ms, atomic=atomic, transaction=transaction)
            if flush:
                self.flush(now_ms)
        except OSError as error:
            if is_shortage(error) and self._take_back(end_offset, now_ms):
                raise MetadataLogShortage(self.directory, error) from error
            # It is unknown which part is on disk, so nothing may follow it.
            self._failed = error
            raise MetadataLogFailed(self.directory, error) from error
        self.image = delta.apply(offset=self.log.log_end_offset - 1, epoch=self.epoch, timestamp_ms=now_ms)
        return Change(delta, self.image)

    def _take_back(self, end_offset: Offset, now_ms: int) -> bool:
        """Cut off what a commit has written. Return False if the log cannot be written to."""
        try:
            self.log.truncate_to(end_offset, now_ms)
        except OSError:
            return False
        return True

    @property
    def failure(self) -> OSError | None:
        """The error after which nothing can be written, or None."""
        return self._failed

    def flush(self, now_ms: int) -> None:
        self.log.flush(now_ms)
        self.log.advance_high_watermark(self.log.log_end_offset)

    def _append_frames(
        self,
        frames: Sequence[bytes],
        versions: RecordVersions,
        now_ms: int,
        *,
        atomic: bool = True,
        transaction: str | None = None,
    ) -> None:
        begin = messages.BeginTransactionRecord(name=transaction)
        first, last = frames_of([begin, messages.EndTransactionRecord()], versions)
        if transaction is not None and versions.has_transactions:
            frames = [first, *frames, last]
        groups = list(in_batches(frames, MAX_BATCH_BYTES // 2))
        if atomic and len(groups) > 1 and transaction is None:
            assert versions.has_transactions, f"{len(frames)} records are too many for this metadata.version"
            groups = [[first], *groups, [last]]
        for group in groups:
            batch = build_frames_batch(
                group, base_offset=self.log.log_end_offset, leader_epoch=self.epoch, timestamp_ms=now_ms
            )
            self._append(batch, now_ms)

    def _record_versions(self, records: Sequence[Message]) -> RecordVersions:
        """Return the versions to write records in. If the records begin with feature levels, those decide."""
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
        """Do a part of the maintenance: a batch of a snapshot, or removal of old files. Return True if more is due."""
        try:
            self.log.run_due(now_ms)
        except OSError as error:
            if not is_shortage(error):
                self._failed = error
            _log.error("maintenance of the metadata log failed: %s", error)
            return False
        return self.snapshots.step(self.log, self.image, self.quorum, now_ms)

    def next_deadline_ms(self) -> int | None:
        """Return when `tick` is due next."""
        return self.snapshots.next_deadline_ms(self.log.deferred.next_due_ms)

    def close(self, now_ms: int) -> None:
        if self._failed is None:
            self.flush(now_ms)
            self.log.close()
        else:
            self.log.abandon()
        self.snapshots.abandon()

    def abandon(self) -> None:
        """Release everything without writing, as a crash would."""
        self.log.abandon()
