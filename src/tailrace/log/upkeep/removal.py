"""Removal: files are renamed away at once and removed later, when no reader holds them any more."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from tailrace.log.disk import file_names
from tailrace.log.disk.files import Files
from tailrace.log.producers.producer_states import ProducerStates
from tailrace.log.segments.segment import Segment
from tailrace.log.segments.segment_list import SegmentList
from tailrace.log.upkeep.deferred import Deferred


class Removal:
    def __init__(self, files: Files, deferred: Deferred, producers: ProducerStates) -> None:
        self._files = files
        self._deferred = deferred
        self._producers = producers

    def mark_deleted(self, segments: Sequence[Segment], due_ms: int) -> None:
        """Give the segments' files the suffix `.deleted`; they go at `due_ms`."""
        for segment in segments:
            segment.rename(file_names.DELETED)
            # One by one, from an end of the log: a crash may bring some back, but never with a hole between.
            self._files.sync_directory(segment.directory)
        self.remove_later(segments, due_ms)

    def replace(self, segments: SegmentList, old: Segment, make: Callable[[], Segment], due_ms: int) -> Segment:
        """Put a new segment in place of an empty one with the same base offset, which stays if that fails."""
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
                segment.remove_files()

        self._deferred.add(due_ms, remove)

    def mark_snapshots_deleted(self, segments: Iterable[Segment], due_ms: int) -> None:
        """The producer snapshots at the segments' base offsets go with them."""
        paths = [self._producers.mark_snapshot_deleted(segment.base_offset) for segment in segments]

        def remove() -> None:
            for path in paths:
                if path is not None:
                    self._files.remove(path)

        self._deferred.add(due_ms, remove)
