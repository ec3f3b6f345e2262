"""ServedLog: the metadata log as its leader serves it to observers.

    Fetch            position checked ──► records up to the high watermark, or why there are none:
                         FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH   the observer knows another epoch
                         diverging epoch                             the observer has to cut its log
                         snapshot id                                 the log no longer has these offsets
    FetchSnapshot    a piece of a snapshot's file

Observers get only what is durable here. So a crash of this node never takes back what an observer has read. Each
response has the leader and its epoch. The progress of observers is kept for DescribeQuorum.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tailrace.log.disk.files import join
from tailrace.log.watermarks import Isolation
from tailrace.metadata.storage.metadata_log import MetadataLog
from tailrace.metadata.storage.metadata_snapshot import SnapshotId
from tailrace.metadata.storage.storage_format import METADATA_TOPIC_ID
from tailrace.model.errors import ErrorCode
from tailrace.model.ids import Offset
from tailrace.protocol.messages import FetchRequest, FetchResponse, FetchSnapshotRequest, FetchSnapshotResponse

BYTES_MAX: Final = 1024 * 1024  # in one response, unless the first batch is larger
OBSERVERS_MAX: Final = 1_000
OBSERVER_EXPIRY_MS: Final = 300_000  # an observer without a fetch for this time is forgotten

FetchPartition = FetchRequest.FetchPartition
PartitionData = FetchResponse.PartitionData
SnapshotPartition = FetchSnapshotRequest.PartitionSnapshot
SnapshotPartitionData = FetchSnapshotResponse.PartitionSnapshot


@dataclass(slots=True)
class Observer:
    """The progress of a node that follows the metadata log."""

    end_offset: Offset
    fetched_ms: int
    caught_up_ms: int = -1


class ServedLog:
    def __init__(self, log: MetadataLog) -> None:
        self._log = log
        self.observers: dict[tuple[int, bytes], Observer] = {}  # by node and directory id

    @property
    def cluster_id(self) -> str:
        return self._log.identity.cluster_id

    # Fetch

    def answer(self, asked: FetchPartition, bytes_max: int) -> PartitionData:
        """Return the answer to a fetch as it is now."""
        error = self._check_epoch(asked.current_leader_epoch)
        if not error and (asked.partition or min(asked.fetch_offset, asked.last_fetched_epoch) < 0):
            error = ErrorCode.INVALID_REQUEST
        answer = PartitionData(partition_index=asked.partition, error_code=error, high_watermark=-1, records=b"")
        answer.current_leader = FetchResponse.LeaderIdAndEpoch(
            leader_id=self._log.identity.node_id, leader_epoch=self._log.epoch
        )
        if error:
            return answer
        log = self._log.log
        answer.high_watermark, answer.log_start_offset = log.high_watermark, log.log_start_offset
        snapshot = self._needed_snapshot(asked)
        if snapshot is not None:
            answer.snapshot_id = FetchResponse.SnapshotId(end_offset=snapshot.end_offset, epoch=snapshot.epoch)
            return answer
        if asked.fetch_offset or asked.last_fetched_epoch:
            end = self._end_of_epoch(asked.last_fetched_epoch)
            if end[0] != asked.last_fetched_epoch or end[1] < asked.fetch_offset:
                answer.diverging_epoch = FetchResponse.EpochEndOffset(epoch=end[0], end_offset=end[1])
                return answer
        answer.records = self._records(asked.fetch_offset, bytes_max)
        return answer

    def must_answer_now(self, asked: FetchPartition, answer: PartitionData) -> bool:
        """Return True if the answer has something for the observer: an error, records, a divergence, a snapshot or a
        new high watermark. Otherwise the fetch waits."""
        is_behind = 0 <= asked.high_watermark < answer.high_watermark and asked.fetch_offset >= answer.high_watermark
        return bool(
            answer.error_code
            or answer.records
            or answer.diverging_epoch.epoch >= 0
            or answer.snapshot_id.epoch >= 0
            or is_behind
        )

    def _check_epoch(self, epoch: int) -> ErrorCode:
        if epoch < 0 or epoch == self._log.epoch:
            return ErrorCode.NONE if epoch >= 0 else ErrorCode.INVALID_REQUEST
        return ErrorCode.FENCED_LEADER_EPOCH if epoch < self._log.epoch else ErrorCode.UNKNOWN_LEADER_EPOCH

    def _needed_snapshot(self, asked: FetchPartition) -> SnapshotId | None:
        """Return the snapshot that an observer has to load first, or None if it can continue with the log."""
        snapshots, start = self._log.snapshots, self._log.log.log_start_offset
        latest = snapshots.latest
        if latest is None or (start == 0 and asked.fetch_offset == 0 and asked.last_fetched_epoch == 0):
            return None
        first = snapshots.ids[0]
        offset, epoch = asked.fetch_offset, asked.last_fetched_epoch
        if offset < start or epoch < first.epoch or (offset == start and epoch != first.epoch):
            return latest
        return None

    def _end_of_epoch(self, epoch: int) -> tuple[int, Offset]:
        """Return the last epoch up to `epoch` that this log has, and where it ends."""
        log, first = self._log.log, self._log.snapshots.ids[:1]
        if first and first[0].epoch == epoch and first[0].end_offset == log.log_start_offset:
            end = log.end_of_epoch(epoch)
            return epoch, max(end.end_offset, log.log_start_offset)  # the log may begin after that epoch
        end = log.end_of_epoch(epoch)
        if end.end_offset >= 0:
            return end.epoch, end.end_offset
        latest = log.epochs.latest
        return (latest.epoch if latest else 0), log.log_end_offset

    def _records(self, offset: Offset, bytes_max: int) -> bytes:
        log = self._log.log
        if offset >= log.high_watermark:
            return b""
        found = log.read(offset, min(max(bytes_max, 1), BYTES_MAX), Isolation.READ_UNCOMMITTED, at_least_one=True).slice
        return b"" if found is None else found.read()

    # Snapshots

    def snapshot_piece(self, asked: SnapshotPartition, bytes_max: int) -> SnapshotPartitionData:
        """Return a piece of a snapshot's file."""
        wanted = SnapshotId(asked.snapshot_id.end_offset, asked.snapshot_id.epoch)
        answer = SnapshotPartitionData(index=asked.partition, error_code=self._check_epoch(asked.current_leader_epoch))
        answer.current_leader = FetchSnapshotResponse.LeaderIdAndEpoch(
            leader_id=self._log.identity.node_id, leader_epoch=self._log.epoch
        )
        answer.unaligned_records = b""
        if not answer.error_code and asked.partition:
            answer.error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if not answer.error_code and wanted not in self._log.snapshots.ids:
            answer.error_code = ErrorCode.SNAPSHOT_NOT_FOUND
        if answer.error_code:
            return answer
        path = join(self._log.directory, wanted.file_name)
        size = self._log.files.size(path)
        if not 0 <= asked.position < size:
            answer.error_code = ErrorCode.POSITION_OUT_OF_RANGE
            return answer
        file = self._log.files.open(path, read_only=True)
        try:
            length = min(max(bytes_max, 1), BYTES_MAX, size - asked.position)
            answer.unaligned_records = file.read(asked.position, length)
        finally:
            file.close()
        answer.snapshot_id = FetchSnapshotResponse.SnapshotId(end_offset=wanted.end_offset, epoch=wanted.epoch)
        answer.size, answer.position = size, asked.position
        return answer

    # Observers

    def note_fetch(self, node_id: int, asked: FetchPartition, now_ms: int) -> None:
        """Note the progress of an observer."""
        self._forget_silent(now_ms)
        key = (node_id, asked.replica_directory_id)
        known = self.observers.get(key)
        if known is None:
            if len(self.observers) >= OBSERVERS_MAX:
                return
            known = self.observers[key] = Observer(asked.fetch_offset, now_ms)
        known.end_offset, known.fetched_ms = asked.fetch_offset, now_ms
        if asked.fetch_offset >= self._log.log.high_watermark:
            known.caught_up_ms = now_ms

    def _forget_silent(self, now_ms: int) -> None:
        silent = [key for key, one in self.observers.items() if now_ms - one.fetched_ms > OBSERVER_EXPIRY_MS]
        for key in silent:
            del self.observers[key]


def is_metadata_topic(topic_id: bytes) -> bool:
    return topic_id == METADATA_TOPIC_ID.value.bytes
