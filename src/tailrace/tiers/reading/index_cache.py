"""IndexCache: the indexes of remote segments, kept in the folder `remote-log-index-cache` of the first log directory.

    <start offset>_<segment id>.index       offset → byte position
    <start offset>_<segment id>.timeindex   timestamp → offset
    <start offset>_<segment id>.txnindex    aborted transactions; empty if the segment has none

Names and contents are Kafka's, and a start keeps the files that it finds. The least recently used ones are removed when
all together exceed `remote.log.index.file.cache.total.size.bytes`, or when they were not used for
`remote.log.index.file.cache.ttl.ms`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, NamedTuple

from tailrace.log.disk import file_names
from tailrace.log.disk.files import Files, join, write_atomically
from tailrace.log.segments.indexes.offset_index import OffsetIndex
from tailrace.log.segments.indexes.time_index import TimeIndex
from tailrace.log.segments.indexes.transaction_index import TransactionIndex
from tailrace.model.topic_config import INT_MAX
from tailrace.tiers.remote_segment import RemoteSegment
from tailrace.tiers.stores.remote_store import IndexKind, RemoteResourceNotFound, RemoteStore

FOLDER: Final = "remote-log-index-cache"
_NAME = re.compile(r"([0-9]+_[A-Za-z0-9_-]{22})(\.index|\.timeindex|\.txnindex)")


class RemoteIndexes(NamedTuple):
    """The indexes of one segment, opened."""

    offsets: OffsetIndex
    times: TimeIndex
    transactions: TransactionIndex
    size: int


class _Use(NamedTuple):
    size: int
    used_ms: int


class IndexCache:
    def __init__(self, files: Files, directory: str, size_max: Callable[[], int], ttl_ms: int, now_ms: int) -> None:
        """`directory` is the first log directory. `size_max` returns the current limit. A negative `ttl_ms` is none."""
        self._files = files
        self.folder = join(directory, FOLDER)
        self._size_max = size_max
        self._ttl_ms = ttl_ms
        self._uses: dict[str, _Use] = {}  # by name, the least recently used first
        self._open: dict[str, RemoteIndexes] = {}
        self.size = 0
        self._find_files(now_ms)

    def _find_files(self, now_ms: int) -> None:
        """Keep complete sets of files, and remove all others."""
        self._files.make_directory(self.folder)
        sets: dict[str, list[str]] = {}
        for entry in self._files.entries(self.folder):
            match = _NAME.fullmatch(entry.name)
            if match is None:
                self._files.remove(join(self.folder, entry.name))
            else:
                sets.setdefault(match[1], []).append(entry.name)
        for stem, names in sets.items():
            paths = [join(self.folder, name) for name in names]
            if len(names) == len(_KINDS):
                self._uses[stem] = _Use(sum(map(self._files.size, paths)), now_ms)
            else:
                for path in paths:
                    self._files.remove(path)
        self.size = sum(use.size for use in self._uses.values())

    def find(self, segment: RemoteSegment, now_ms: int) -> RemoteIndexes | None:
        """Return the indexes of a segment if they are here."""
        stem = _stem(segment)
        use = self._uses.pop(stem, None)
        if use is None:
            return None
        self._uses[stem] = use._replace(used_ms=now_ms)
        found = self._open.get(stem)
        if found is None:
            found = self._open[stem] = self._opened(segment, use.size)
        return found

    def load(self, segment: RemoteSegment, store: RemoteStore) -> RemoteIndexes:
        """Fetch the indexes of a segment. This may run on any thread. `keep` adds them to the cache."""
        size = 0
        for kind, ending in _KINDS.items():
            data = _fetched(segment, store, kind)
            write_atomically(self._files, join(self.folder, _stem(segment) + ending), data)
            size += len(data)
        return self._opened(segment, size)

    def keep(self, segment: RemoteSegment, indexes: RemoteIndexes, now_ms: int) -> None:
        """Add the indexes that `load` returned, and remove what has no room."""
        stem = _stem(segment)
        if stem not in self._uses:
            self.size += indexes.size
        self._uses[stem] = _Use(indexes.size, now_ms)
        self._open[stem] = indexes
        self.expire(now_ms)

    def expire(self, now_ms: int) -> None:
        """Remove the files that were not used for long or have no room. The latest ones always stay."""
        limit = self._size_max()
        for stem, use in list(self._uses.items()):
            is_idle = 0 <= self._ttl_ms < now_ms - use.used_ms
            if not is_idle and (self.size <= limit or len(self._uses) == 1):
                return
            self._remove(stem)

    def forget(self, segment: RemoteSegment) -> None:
        """Remove the files of a segment that is deleted."""
        self._remove(_stem(segment))

    def _remove(self, stem: str) -> None:
        use = self._uses.pop(stem, None)
        if use is None:
            return
        self.size -= use.size
        self._open.pop(stem, None)
        for ending in _KINDS.values():
            self._files.remove(join(self.folder, stem + ending))

    def _opened(self, segment: RemoteSegment, size: int) -> RemoteIndexes:
        base, stem = segment.start_offset, join(self.folder, _stem(segment))
        indexes = RemoteIndexes(
            OffsetIndex(self._files, stem + file_names.OFFSET_INDEX, base, INT_MAX),
            TimeIndex(self._files, stem + file_names.TIME_INDEX, base, INT_MAX),
            TransactionIndex(self._files, stem + file_names.TRANSACTION_INDEX, base),
            size,
        )
        # Their bytes are read now: the files may be removed while a read still uses them.
        _ = indexes.offsets.count, indexes.times.count, indexes.transactions.entries
        return indexes


_KINDS: Final = {
    IndexKind.OFFSET: file_names.OFFSET_INDEX,
    IndexKind.TIMESTAMP: file_names.TIME_INDEX,
    IndexKind.TRANSACTION: file_names.TRANSACTION_INDEX,
}


def _stem(segment: RemoteSegment) -> str:
    return f"{segment.start_offset}_{segment.segment_id.text}"


def _fetched(segment: RemoteSegment, store: RemoteStore, kind: IndexKind) -> bytes:
    if kind is IndexKind.TRANSACTION and segment.txn_index_empty:
        return b""
    try:
        return store.fetch_index(segment, kind)
    except RemoteResourceNotFound:
        if kind is IndexKind.TRANSACTION:
            return b""  # the segment has no aborted transactions
        raise
