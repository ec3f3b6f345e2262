"""LogOwner: does the work that a log leaves to its owner. This class, for a log without a directory, does it
at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Generic, Protocol, TypeVar

from tailrace.log.disk.files import Files
from tailrace.log.producers.producer_states import ProducerStates
from tailrace.log.segments.segment import Segment
from tailrace.model.ids import Offset, TopicPartition


class OwnedLog(Protocol):
    producers: ProducerStates

    def flush_to(self, offset: Offset, now_ms: int) -> None: ...


L = TypeVar("L", bound=OwnedLog)


class LogOwner(Generic[L]):
    def watch(self, segments: Iterable[Segment]) -> None:
        """Note segments of a log. Their files may be closed at any time between two uses."""

    def remove_files(self, files: Files, paths: Sequence[str]) -> None:
        """Remove files, without waiting. Some of them may be missing."""
        for path in paths:
            files.remove(path)

    def sync_folder(self, files: Files, path: str, synced: Callable[[], object]) -> None:
        """Sync a log's folder, without waiting, before checkpoints that are written later. Then call `synced`."""
        files.sync_directory(path)
        synced()

    def write_checkpoints(self) -> None:
        """Write recovery points and log starts, because one of them was lowered."""

    def note_deferred(self, partition: TopicPartition, due_ms: int) -> None:
        """Note that a log has deferred work that is due before its other work."""

    def flush_sealed(self, log: L, following: Segment, now_ms: int) -> None:
        """Make everything before a segment durable, with the producer snapshots."""
        log.producers.sync_snapshots()
        log.flush_to(following.base_offset, now_ms)

    def flush_soon(self, log: L, end: Offset, now_ms: int) -> None:
        """Make everything below `end` durable, without waiting."""
        log.flush_to(end, now_ms)
