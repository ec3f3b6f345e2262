"""OracleLog: one partition log that Apache Kafka holds open in the oracle."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from tests.support.oracle_types import (
    AbortedTransaction,
    AppendInfo,
    CleanableOffsets,
    CleanResult,
    Isolation,
    LogState,
    OffsetPosition,
    Origin,
    Producers,
    ReadResult,
    SegmentState,
    TimestampOffset,
    to_base64,
)

# Special timestamps of ListOffsets.
LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED = -1, -2, -3, -4, -5


class OracleLog:
    """Kafka's UnifiedLog. After close, crash or delete every call is an error."""

    def __init__(self, call: Callable[..., Any], number: int, directory: Path) -> None:
        self._send = call
        self.number = number
        self.directory = directory

    def _call(self, op: str, **arguments: Any) -> Any:
        return self._send(op, log=self.number, **arguments)

    # --- writing ---

    def append_as_leader(
        self,
        records: bytes,
        *,
        leader_epoch: int = 0,
        origin: Origin = "CLIENT",
        transaction_version: int | None = None,
        verified: bool = False,
        supports_epoch_bump: bool = True,
    ) -> AppendInfo:
        """Append as the partition's leader.

        transaction_version: for markers (origin COORDINATOR), by default 0. From 2 on, a marker's epoch must be above
        that of the transaction's records. verified: first get the guard that a log opened with verify_transactions
        requires.
        """
        answer = self._call(
            "append_as_leader",
            records=to_base64(records),
            leader_epoch=leader_epoch,
            origin=origin,
            transaction_version=transaction_version,
            verified=verified,
            supports_epoch_bump=supports_epoch_bump,
        )
        return AppendInfo.parse(answer)

    def append_as_follower(self, records: bytes, *, leader_epoch: int = 2**31 - 1) -> AppendInfo:
        """Append as a follower. leader_epoch: the follower's; batches with a later epoch are skipped."""
        answer = self._call("append_as_follower", records=to_base64(records), leader_epoch=leader_epoch)
        return AppendInfo.parse(answer)

    def set_high_watermark(self, offset: int) -> int:
        return int(self._call("set_high_watermark", offset=offset))

    def assign_epoch(self, epoch: int, offset: int) -> None:
        """Begin a leader epoch, as becoming leader does."""
        self._call("assign_epoch", epoch=epoch, offset=offset)

    def roll(self, next_offset: int | None = None) -> int:
        """Seal the active segment, and return the base offset of the new one."""
        return int(self._call("roll", next_offset=next_offset))

    def flush(self, *, active: bool = True) -> None:
        """Flush. With `active`, also when the active segment is empty, as a clean stop does."""
        self._call("flush", active=active)

    def flush_up_to(self, offset: int) -> None:
        """Flush the records before an offset."""
        self._call("flush_up_to", offset=offset)

    def take_snapshot(self) -> None:
        self._call("take_snapshot")

    def remove_expired_producers(self) -> None:
        self._call("remove_expired_producers")

    def update_config(self, config: Mapping[str, str]) -> None:
        self._call("update_config", config=dict(config))

    # --- removing ---

    def delete_old_segments(self) -> int:
        """Apply retention by time, size and log start, and return the number of removed segments."""
        return int(self._call("delete_old_segments"))

    def delete_records(self, before_offset: int, *, reason: str = "ClientRecordDeletion") -> bool:
        """Move the log start offset up, and return True if it moved. reason: a LogStartOffsetIncrementReason."""
        return bool(self._call("delete_records", before_offset=before_offset, reason=reason))

    def truncate_to(self, offset: int) -> bool:
        """Truncate to an offset, and return True if anything was removed."""
        return bool(self._call("truncate_to", offset=offset))

    def truncate_fully_and_start_at(self, offset: int, *, log_start_offset: int | None = None) -> None:
        self._call("truncate_fully_and_start_at", offset=offset, log_start_offset=log_start_offset)

    # --- reading ---

    def read(
        self, offset: int, max_bytes: int = 2**31 - 1, *, isolation: Isolation = "LOG_END", min_one: bool = True
    ) -> ReadResult:
        answer = self._call("read", offset=offset, max_bytes=max_bytes, isolation=isolation, min_one=min_one)
        return ReadResult.parse(answer)

    def aborted_transactions(self, start: int, end: int) -> list[AbortedTransaction]:
        found = self._call("aborted_transactions", **{"from": start, "to": end})
        return [AbortedTransaction(**entry) for entry in found]

    def offsets_by_timestamp(self, timestamps: Iterable[int]) -> list[TimestampOffset | None]:
        """Return the result of ListOffsets for each timestamp (or LATEST, EARLIEST, MAX_TIMESTAMP, …), or None if there
        is none.
        """
        answers = self._call("offsets_by_timestamp", timestamps=list(timestamps))
        return [None if answer is None else TimestampOffset(*answer) for answer in answers]

    def offset_by_timestamp(self, timestamp: int) -> TimestampOffset | None:
        return self.offsets_by_timestamp([timestamp])[0]

    def end_offset_for_epoch(self, epoch: int) -> tuple[int, int] | None:
        """Return (epoch, end offset) as OffsetsForLeaderEpoch does."""
        answer = self._call("end_offset_for_epoch", epoch=epoch)
        return None if answer is None else (answer[0], answer[1])

    def offset_metadata(self, offset: int) -> OffsetPosition:
        return OffsetPosition(*self._call("offset_metadata", offset=offset))

    def state(self) -> LogState:
        return LogState.parse(self._call("state"))

    def segments(self) -> list[SegmentState]:
        return [SegmentState.parse(segment) for segment in self._call("segments")]

    def producers(self) -> Producers:
        return Producers.parse(self._call("producers"))

    # --- compaction ---

    def cleanable_offsets(self, last_clean_offset: int | None = None) -> CleanableOffsets:
        """Return the dirty range after last_clean_offset, the value of the cleaner checkpoint (None: no entry)."""
        return CleanableOffsets(**self._call("cleanable_offsets", last_clean_offset=last_clean_offset))

    def clean(
        self,
        last_clean_offset: int | None = None,
        *,
        dedupe_buffer_size: int = 2 * 1024 * 1024,
        io_buffer_size: int = 512 * 1024,
        max_io_buffer_size: int = 1024 * 1024 + 12,
        load_factor: float = 0.9,
    ) -> CleanResult:
        """Compact once, like a cleaner thread that has chosen this log. Does nothing if nothing is dirty.

        dedupe_buffer_size: 24 bytes per key. io_buffer_size is for reading and writing together; both buffers grow to
        max_io_buffer_size (message.max.bytes) when a batch does not fit.
        """
        answer = self._call(
            "clean",
            last_clean_offset=last_clean_offset,
            dedupe_buffer_size=dedupe_buffer_size,
            io_buffer_size=io_buffer_size,
            max_io_buffer_size=max_io_buffer_size,
            load_factor=load_factor,
        )
        return CleanResult(**answer)

    # --- background work and the end ---

    def pending_tasks(self) -> list[str]:
        return list(self._call("pending_tasks"))

    def rename_dir(self, name: str, *, reinitialize_epochs: bool = True) -> None:
        """Rename the partition directory, as a topic deletion does before it deletes."""
        self._call("rename_dir", name=name, reinitialize_epochs=reinitialize_epochs)
        self.directory = self.directory.with_name(name)

    def shut_down(self) -> None:
        """Flush and close, as a clean broker stop does to a log. The caller writes the checkpoints."""
        self.flush()
        self.close()

    def close(self) -> None:
        """Close cleanly: indexes are trimmed, the producer snapshot is written, pending tasks are dropped."""
        self._call("close")

    def crash(self) -> None:
        """Close the files as they are: indexes at full size, nothing flushed, nothing written."""
        self._call("crash")

    def delete(self) -> None:
        """Close and delete the directory with all its files at once."""
        self._call("delete")
