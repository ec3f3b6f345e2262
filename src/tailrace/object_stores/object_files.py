"""ObjectFiles: a bucket with the interface of the log's files, read-only.

A folder is listed with one request per thousand names. Sizes and times come from the last listing of the folder, so no
request is needed for a single object. Paths are complete addresses, such as s3://bucket/prefix/orders-0, also in
messages.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterable
from threading import Lock
from typing import Any

from tailrace.log.disk.files import Entry, Space
from tailrace.object_stores.object_file import KnownObject, ObjectFile, read_only
from tailrace.object_stores.read_ahead import PARTS_AT_ONCE, ReadAhead, Workers
from tailrace.object_stores.store import ListedObject, ObjectStore
from tailrace.records.batch import Buffer

_MAX_KNOWN = 1024  # cached objects, each with a window
_WORKERS = 16  # parallel requests


class ObjectFiles:
    def __init__(self, store: ObjectStore) -> None:
        self._store = store
        self._listings: dict[str, dict[str, ListedObject]] = {}
        self._known: dict[str, KnownObject] = {}
        self._lock = Lock()
        # Two pools, because work in one waits for fetches in the other.
        self._fetching = Workers(PARTS_AT_ONCE)
        self._working = Workers(_WORKERS)
        self._ahead = ReadAhead(self._fetching)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle only the store; the copy makes its own listings and connections."""
        return ObjectFiles, (self._store,)

    def run_together(self, work: Iterable[Callable[[], object]]) -> None:
        """Run functions that mostly wait for the store in parallel. Raise the first error."""
        for done in [self._working.submit(piece) for piece in work]:
            done.result()

    # Reading

    def entries(self, path: str) -> list[Entry]:
        self._listings.pop(path, None)
        listing = self._listings[path] = self._store.list(path)
        return [Entry(name, found.is_directory) for name, found in listing.items()]

    def _find(self, path: str) -> ListedObject | None:
        if path in self._listings:
            return ListedObject(is_directory=True, size=0, modified_ms=0)
        parent, _, name = path.rpartition("/")
        if parent not in self._listings:
            if parent.endswith(":/"):
                return None  # a bucket that was not listed
            try:
                self.entries(parent)
            except FileNotFoundError:
                return None
        return self._listings[parent].get(name)

    def _find_existing(self, path: str) -> ListedObject:
        found = self._find(path)
        if found is None:
            raise FileNotFoundError(errno.ENOENT, "no such object", path)
        return found

    def exists(self, path: str) -> bool:
        return self._find(path) is not None

    def size(self, path: str) -> int:
        return self._find_existing(path).size

    def modified_ms(self, path: str) -> int:
        return self._find_existing(path).modified_ms

    def _object(self, path: str) -> KnownObject:
        """Return the cached object if the last listing shows it unchanged; opening it again would cost requests."""
        found = self._find_existing(path)
        with self._lock:
            known = self._known.pop(path, None)
            if known is None or known.found != found:
                known = KnownObject(path, found, self._store)
            self._known[path] = known
            if len(self._known) > _MAX_KNOWN:
                del self._known[next(iter(self._known))]
        return known

    def open(self, path: str, *, create: bool = False, read_only: bool = False) -> ObjectFile:
        if create and not self.exists(path):
            raise _refused(path)
        return ObjectFile(self._object(path), self._ahead)

    def read(self, path: str) -> bytes:
        file = self.open(path)
        return file.read(0, file.size())

    # Writing (refused)

    def set_modified_ms(self, path: str, modified_ms: int) -> None:
        raise _refused(path)

    def write(self, path: str, data: Buffer, *, sync: bool) -> None:
        raise _refused(path)

    def replace(self, source: str, target: str) -> None:
        raise _refused(source)

    def remove(self, path: str) -> bool:
        raise _refused(path)

    def make_directory(self, path: str) -> None:
        raise _refused(path)

    def remove_directory(self, path: str) -> None:
        raise _refused(path)

    def sync_directory(self, path: str) -> None:
        raise _refused(path)

    def space(self, path: str) -> Space:
        raise OSError(errno.ENOSYS, "an object store does not report its free space", path)

    def lock(self, path: str) -> ObjectFile:
        raise _refused(path)


_refused = read_only
