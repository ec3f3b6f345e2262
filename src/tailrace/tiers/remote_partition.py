"""RemotePartition: the remote log of one partition that is hosted here: its segments, its counters, its tasks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from tailrace.log.leader_epochs import EpochEnd
from tailrace.log.partition_log import PartitionLog
from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.model.ids import LeaderEpoch, Offset, TopicId, TopicPartition
from tailrace.tiers.lineage import highest_remote_offset, remote_log_start
from tailrace.tiers.metadata.segment_cache import SegmentCache
from tailrace.tiers.remote_counters import RemoteCounters
from tailrace.tiers.remote_segment import RemoteSegmentId


class HostedLog(Protocol):
    """A partition that is hosted here. A move to another log directory replaces its log."""

    @property
    def log(self) -> PartitionLog: ...


@dataclass(slots=True, eq=False)
class RemotePartition:
    key: TopicPartition
    topic_id: TopicId
    hosted: HostedLog
    counters: RemoteCounters  # of the topic
    cache: SegmentCache
    is_ready: Callable[[], bool] = lambda: True  # True if the metadata of its segments was read
    is_leader: bool = False
    is_stopped: bool = False  # no longer hosted or no longer tiered: running tasks end at their next step
    copies_are_refused: bool = False  # the custom metadata of a copy was too large: copies end until the next leader
    copied: Offset | None = None  # the last offset in the remote store; None until a task has looked
    being_copied: set[RemoteSegmentId] = field(default_factory=set)
    next_copy_ms: int = 0
    next_expiration_ms: int = 0
    is_copying: bool = False
    is_expiring: bool = False
    copy_failures: int = 0  # in a row
    expiration_failures: int = 0

    @property
    def log(self) -> PartitionLog:
        return self.hosted.log

    @property
    def place(self) -> tuple[TopicId, int]:
        return self.topic_id, self.key.partition

    @property
    def epochs(self) -> list[tuple[LeaderEpoch, Offset]]:
        return [(entry.epoch, entry.start_offset) for entry in self.log.epochs.entries]

    def become_leader(self, now_ms: int) -> None:
        """Start again from the metadata, because another leader may have copied and deleted segments."""
        self.is_leader = True
        self.copied = None
        self.copies_are_refused = False
        self.next_copy_ms = self.next_expiration_ms = now_ms

    def resign(self) -> None:
        self.is_leader = False

    def stop(self) -> None:
        self.is_stopped = True

    def check_ready(self) -> None:
        """Raise an error that clients retry if the metadata was not read yet, so that segments may be missing."""
        if not self.is_ready():
            raise KafkaError(
                ErrorCode.REPLICA_NOT_AVAILABLE, f"the metadata of the remote segments of {self.key} is being read"
            )

    # Tasks

    def begin_copies(self) -> None:
        self.is_copying = True

    def end_copies(self, next_ms: int) -> None:
        self.is_copying, self.next_copy_ms = False, next_ms

    def begin_expiration(self) -> None:
        self.is_expiring = True

    def end_expiration(self, next_ms: int) -> None:
        self.is_expiring, self.next_expiration_ms = False, next_ms

    def count_copy_failures(self, has_failed: bool) -> None:
        self.copy_failures = self.copy_failures + 1 if has_failed else 0

    def count_expiration_failures(self, has_failed: bool) -> None:
        self.expiration_failures = self.expiration_failures + 1 if has_failed else 0

    def note_copied(self, offset: Offset) -> None:
        self.copied = offset
        self.log.raise_highest_remote_offset(offset)

    def refuse_copies(self) -> None:
        """Copy nothing more until the next leadership."""
        self.copies_are_refused = True

    def find_bounds(self, now_ms: int) -> None:
        """Find the start of the remote log and the last copied offset, once in each leadership. Both the copies and the
        expiration need them: without them the expiration would count segments twice that are in both tiers."""
        if self.copied is not None:
            return
        start = remote_log_start(self.cache, self.epochs)
        local_start = self.log.local_start_offset
        start = local_start if start is None else min(start, local_start)
        if start <= self.log.high_watermark:
            self.log.delete_records(start, now_ms)
        self.copied = self.find_highest_offset()

    def find_highest_offset(self) -> Offset:
        """Find the last offset in the remote store, and let the local retention know it."""
        highest, _ = highest_remote_offset(self.cache, self.epochs, self.log.log_start_offset, self._end_of)
        self.log.raise_highest_remote_offset(highest)
        return highest

    def _end_of(self, epoch: LeaderEpoch) -> EpochEnd:
        return self.log.end_of_epoch(epoch)
