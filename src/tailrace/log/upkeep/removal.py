"""Removal: files are renamed at once and removed later, when no reader uses them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from tailrace.log.disk import file_names
from tailrace.log.disk.files import Files
from tailrace.log.producers.producer_states import ProducerStates
from tailrace.log.segments.segment import Segment
from tailrace.log.segments.segment_list import SegmentList
from tailrace.log.upkeep.deferred import Deferred
from tailrace.log.upkeep.durability import Durability
from tailrace.log.upkeep.log_owner import LogOwner


class Removal:
    def __init__(
        self,
        files: Files,
        deferred: Deferred,
        producers: ProducerStates,
        durability: Durability,
        owner: Callable[[], LogOwner[Any]],
    ) -> None:
        self._files = files
        self._durability = durability
        self._owner = owner
        self.is_syncing = False  # True until the sync of `sync_soon` has ended
        self._deferred = deferred
        self._producers = producers

    def mark_deleted(self, segments: Sequence[Segment], due_ms: int, then: Callable[[], object] | None = None) -> None:
        """Rename the segments' files to the suffix `.deleted`. They are removed at `due_ms`.

        With `then`, the last rename becomes durable later, and then this function is called.
        """
        for number, segment in enumerate(segments, 1):
            segment.rename(file_names.DELETED)
            # One by one, from one end of the log: after a crash some may return, but never with a gap between them.
            if then is not None and number == len(segments):
                self.sync_soon(segment.directory, then)
            else:
                self._files.sync_directory(segment.directory)
        self.remove_later(segments, due_ms)

    def sync_soon(self, directory: str, then: Callable[[], object] = lambda: None) -> None:
        """Sync the log's folder, without waiting if the log's owner has another thread. Then call `then`."""
        names = self._durability.names

        def synced() -> None:
            self.is_syncing = False
            self._durability.note_names_synced(names)
            then()

        self.is_syncing = True
        self._owner().sync_folder(self._files, directory, synced)

    def replace(self, segments: SegmentList, old: Segment, make: Callable[[], Segment], due_ms: int) -> Segment:
        """Put a new segment in place of an empty one with the same base offset. If that fails, the old one stays."""
        old.rename(file_names.DELETED)
        try:
            segment = make()
        except OSError:
            old.rename("")
            raise
        segments.remove(old.base_offset)
        segments.add(segment)
        self.remove_later([old], due_ms)
        return segment

    def remove_later(self, segments: Sequence[Segment], due_ms: int) -> None:
        def remove() -> None:
            for segment in segments:
                segment.release()
            self._owner().remove_files(self._files, [path for segment in segments for path in segment.paths()])

        self._deferred.add(due_ms, remove)

    def mark_snapshots_deleted(self, segments: Iterable[Segment], due_ms: int) -> None:
        """Remove the producer snapshots at the segments' base offsets with them."""
        paths = [self._producers.mark_snapshot_deleted(segment.base_offset) for segment in segments]

        def remove() -> None:
            self._owner().remove_files(self._files, [path for path in paths if path is not None])

        self._deferred.add(due_ms, remove)
