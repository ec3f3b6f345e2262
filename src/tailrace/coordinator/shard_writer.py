"""ShardWriter: appends the records of a StateChange, and replays them into the shard.

    KafkaError           the log refused the batch: nothing was written
    UnwritableMessage    a record does not fit its format: nothing was written
    ReplayFailed           the log may contain records that are not in the shard: the shard must be loaded again

`coordinator_error` maps an error of the log to the error for clients.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tailrace.coordinator.change_batches import build_batches, build_packed
from tailrace.coordinator.coordinator_log import CoordinatorLog
from tailrace.coordinator.failures import Failures
from tailrace.coordinator.shard import CoordinatorRecord, CoordinatorShard, PackedRecords, StateChange
from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.model.ids import Offset, TopicPartition
from tailrace.records.batch import Codec
from tailrace.records.control_records import ControlType, EndTransactionMarker, build_end_marker

_CLIENT_ERRORS = {
    ErrorCode.NETWORK_EXCEPTION: ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.INVALID_FETCH_SIZE: ErrorCode.UNKNOWN_SERVER_ERROR,
}


def coordinator_error(code: ErrorCode) -> ErrorCode:
    """Return the error for a coordinator's client when its log refuses a batch with this error."""
    return _CLIENT_ERRORS.get(code, code)


class ReplayFailed(Exception):
    """An append or a replay failed, so log and memory may differ."""

    def __init__(self, reason: Exception) -> None:
        super().__init__(str(reason))
        self.reason = reason


class ShardWriter:
    def __init__(
        self, log: CoordinatorLog, key: TopicPartition, shard: CoordinatorShard, codec: Codec, failures: Failures
    ) -> None:
        self._log = log
        self._key = key
        self._shard = shard
        self._codec = codec
        self._failures = failures
        self.end: Offset = 0  # the log end after the last append

    def start_at(self, end: Offset) -> None:
        """Set the log end after loading."""
        self.end = end

    def write(self, change: StateChange[Any], now_ms: int) -> None:
        """Append the records of a change and replay them."""
        packed = change.records
        if isinstance(packed, PackedRecords):
            limit = self._log.batch_bytes_max(self._key)
            batch, payload = build_packed(change, packed, self._key, limit, self._codec, now_ms)
            self._append(batch, lambda end: packed.replay(payload, end - len(packed)), now_ms)
            return

        def left_out(error: Exception) -> None:
            self._failures.note_operation("writing a record", self._key, error, now_ms)

        limit = self._log.batch_bytes_max(self._key)
        for batch, records in build_batches(change, self._key, limit, self._codec, now_ms, left_out):
            self._append(batch, lambda end, of=records: self._replay(change, of, end), now_ms)  # type: ignore[misc]

    def _replay(self, change: StateChange[Any], records: list[CoordinatorRecord], end: Offset) -> None:
        if change.is_replayed:
            for offset, record in enumerate(records, end - len(records)):
                placed = CoordinatorRecord(record.key, record.value, record.version, offset)
                self._shard.replay(placed, change.producer_id, change.producer_epoch)

    def end_transaction(
        self,
        producer_id: int,
        producer_epoch: int,
        coordinator_epoch: int,
        is_committed: bool,
        transaction_version: int,
        now_ms: int,
    ) -> None:
        """Append the marker that ends a producer's transaction, and replay it."""
        kind = ControlType.COMMIT if is_committed else ControlType.ABORT
        marker = build_end_marker(
            EndTransactionMarker(kind, coordinator_epoch),
            timestamp=now_ms,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
        )
        self._append(
            marker,
            lambda _: self._shard.replay_end_transaction(producer_id, producer_epoch, is_committed),
            now_ms,
            transaction_version,
        )

    def _append(
        self, batch: bytes, replay: Callable[[Offset], None], now_ms: int, transaction_version: int = 0
    ) -> None:
        try:
            self.end = self._log.append(self._key, batch, now_ms, transaction_version)
        except KafkaError:
            raise  # nothing was written
        except Exception as error:
            raise ReplayFailed(error) from error
        try:
            replay(self.end)
        except Exception as error:
            raise ReplayFailed(error) from error
