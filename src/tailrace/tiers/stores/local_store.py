"""LocalStore: a folder in the layout of Kafka's LocalTieredStorage. Brokers of both kinds can share the folder.

The files of a segment get their final names at once, because Kafka's class refuses other names. A copy that was not
completed lacks the last file, the producer snapshot. Every file is synced, and then the folder.
"""

from __future__ import annotations

from collections.abc import Callable

from tailrace.log.disk import file_names
from tailrace.log.disk.files import Files, join
from tailrace.tiers.remote_segment import RemoteSegment
from tailrace.tiers.stores import local_layout
from tailrace.tiers.stores.countdown import Countdown
from tailrace.tiers.stores.remote_store import (
    IndexKind,
    RemoteResourceNotFound,
    RemoteStorageError,
    SegmentFiles,
)

_CHUNK = 1024 * 1024


class LocalStore:
    """A remote store in `<directory>/kafka-tiered-storage`."""

    def __init__(self, directory: str, files: Files, clock_ms: Callable[[], int], *, deletes: bool = True) -> None:
        """Without `deletes` a deletion leaves the files, as with delete.enable=false in Kafka."""
        self.root = join(directory, local_layout.ROOT_FOLDER)
        self._files = files
        self._clock_ms = clock_ms
        self._deletes = deletes

    def copy_segment(self, segment: RemoteSegment, files: SegmentFiles, timeout_ms: int) -> bytes | None:
        stem = self._stem(segment)
        countdown = Countdown(timeout_ms, self._clock_ms, f"the copy of {stem}")
        try:
            self._files.make_directory(self._folder(segment))
            self._copy(files.log, stem + file_names.LOG, countdown)
            self._copy(files.offset_index, stem + file_names.OFFSET_INDEX, countdown)
            self._copy(files.time_index, stem + file_names.TIME_INDEX, countdown)
            if files.transaction_index is not None:
                self._copy(files.transaction_index, stem + file_names.TRANSACTION_INDEX, countdown)
            self._files.write(stem + local_layout.EPOCHS, files.leader_epochs, sync=True)
            self._copy(files.producer_snapshot, stem + file_names.PRODUCER_SNAPSHOT, countdown)
            self._files.sync_directory(self._folder(segment))
        except OSError as error:
            raise _failed("cannot be copied", stem, error) from None
        return None

    def fetch_segment(self, segment: RemoteSegment, start: int, end: int | None = None) -> bytes:
        path = self._stem(segment) + file_names.LOG
        try:
            log = self._files.open(path, read_only=True)
            try:
                size = log.size() if end is None else end
                return log.read(start, max(size - start, 0))
            finally:
                log.close()
        except FileNotFoundError:
            raise RemoteResourceNotFound(f"there is no remote segment {path}") from None
        except OSError as error:
            raise _failed("cannot be read", path, error) from None

    def fetch_index(self, segment: RemoteSegment, kind: IndexKind) -> bytes:
        path = self._stem(segment) + local_layout.SUFFIXES[kind]
        try:
            return self._files.read(path)
        except FileNotFoundError:
            raise RemoteResourceNotFound(f"there is no remote file {path}") from None
        except OSError as error:
            raise _failed("cannot be read", path, error) from None

    def delete_segment(self, segment: RemoteSegment) -> None:
        if not self._deletes:
            return
        stem = self._stem(segment)
        try:
            removed = [
                self._files.remove(stem + suffix) for suffix in (file_names.LOG, *local_layout.SUFFIXES.values())
            ]
            if any(removed):
                self._files.sync_directory(self._folder(segment))
        except OSError as error:
            raise _failed("cannot be deleted", stem, error) from None

    def _folder(self, segment: RemoteSegment) -> str:
        return join(self.root, local_layout.partition_folder(segment.segment_id))

    def _stem(self, segment: RemoteSegment) -> str:
        return join(self._folder(segment), local_layout.segment_stem(segment))

    def _copy(self, source: str, target: str, countdown: Countdown) -> None:
        """Copy a file in pieces, so that memory is bounded and the time is checked."""
        read = self._files.open(source, read_only=True)
        self._files.write(target, b"", sync=False)
        written = self._files.open(target)
        try:
            position, buffer = 0, memoryview(bytearray(_CHUNK))
            while count := read.read_into(position, buffer):
                countdown.check()
                written.write(position, buffer[:count])
                position += count
            written.sync()
            countdown.check()
        finally:
            read.close()
            written.close()


def _failed(what: str, stem: str, error: OSError) -> RemoteStorageError:
    return RemoteStorageError(f"{stem} {what}: {error.filename or stem}: {error.strerror}")
