"""IndexCache: the indexes of remote segments, kept in the folder `remote-log-index-cache` of the first log directory.

    <start offset>_<segment id>.index       offset → byte position
    <start offset>_<segment id>.timeindex   timestamp → offset
    <start offset>_<segment id>.txnindex    aborted transactions; empty if the segment has none

Names and contents are Kafka's, and a start keeps the files that it finds. The least recently used ones are removed when
all together exceed `remote.log.index.file.cache.total.size.bytes`, or when they were not used for
`remote.log.index.file.cache.ttl.ms`.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from functools import partial
from itertools import count
from typing import Final, NamedTuple

from tailrace.log.disk import file_names
from tailrace.log.disk.files import Files, join
from tailrace.log.segments.indexes.index_file import CorruptIndex
from tailrace.log.segments.indexes.offset_index import OffsetIndex
from tailrace.log.segments.indexes.time_index import TimeIndex
from tailrace.log.segments.indexes.transaction_index import TransactionIndex
from tailrace.model.topic_config import INT_MAX
from tailrace.tiers.remote_segment import RemoteSegment
from tailrace.tiers.steps import Beside, RemoteSteps
from tailrace.tiers.stores.remote_store import IndexKind, RemoteResourceNotFound, RemoteStore

_log = logging.getLogger(__name__)

_LOADING: Final = ".loading"  # a start removes such files
_NAME = re.compile(r"([0-9]+_[A-Za-z0-9_-]{22})(\.index|\.timeindex|\.txnindex)")


class RemoteIndexes(NamedTuple):
    """The indexes of one segment, opened."""

    offsets: OffsetIndex
    times: TimeIndex
    transactions: TransactionIndex
    size: int


class LoadedIndexes(NamedTuple):
    """The indexes of one segment in files that are not in the cache yet."""

    stem: str  # the common start of their paths
    indexes: RemoteIndexes


class _Use(NamedTuple):
    size: int
    used_ms: int


class IndexCache:
    def __init__(self, files: Files, directory: str, size_max: Callable[[], int], ttl_ms: int, now_ms: int) -> None:
        """`directory` is the first log directory. `size_max` returns the current limit. A negative `ttl_ms` means no
        time limit."""
        self._files = files
        self.folder = join(directory, file_names.REMOTE_INDEXES)
        self._size_max = size_max
        self._ttl_ms = ttl_ms
        self._uses: dict[str, _Use] = {}  # by name, the least recently used first
        self._open: dict[str, RemoteIndexes] = {}
        self._loads = count()  # numbers that make the names of loading files unique
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
            try:
                found = self._open[stem] = self._open_indexes(segment, join(self.folder, stem), use.size)
            except CorruptIndex as error:
                _log.warning("a cached index of a remote segment is fetched again: %s", error)
                self._remove(stem)
        return found

    def in_memory(self, segment: RemoteSegment) -> RemoteIndexes | None:
        """Return the indexes of a segment if they are in memory, without counting a use."""
        return self._open.get(_stem(segment))

    def get(self, segment: RemoteSegment, store: RemoteStore, now_ms: int) -> RemoteSteps[tuple[RemoteIndexes, int]]:
        """Return the indexes of a segment, from the cache or the store, and the time."""
        known = self.find(segment, now_ms)
        if known is None:
            loaded, now_ms = yield Beside(partial(self.load, segment, store))
            known = self.keep(segment, loaded, now_ms)
        return known, now_ms

    def load(self, segment: RemoteSegment, store: RemoteStore) -> LoadedIndexes:
        """Fetch the indexes of a segment. Several threads may do this at a time, also for one segment: each writes
        files of its own. `keep` adds them to the cache."""
        stem = join(self.folder, f"{_stem(segment)}.{next(self._loads)}{_LOADING}")
        size = 0
        try:
            for kind, ending in _KINDS.items():
                data = _fetched(segment, store, kind)
                self._files.write(stem + ending, data, sync=True)
                size += len(data)
            return LoadedIndexes(stem, self._open_indexes(segment, stem, size))
        except BaseException:
            self._remove_files(stem)
            raise

    def keep(self, segment: RemoteSegment, loaded: LoadedIndexes, now_ms: int) -> RemoteIndexes:
        """Add the indexes that `load` returned, and remove what has no room. Return the indexes of the segment."""
        stem = _stem(segment)
        if stem in self._uses:  # another read was faster
            self._remove_files(loaded.stem)
            return self.find(segment, now_ms) or loaded.indexes
        for ending in _KINDS.values():
            self._files.replace(loaded.stem + ending, join(self.folder, stem + ending))
        self.size += loaded.indexes.size
        self._uses[stem] = _Use(loaded.indexes.size, now_ms)
        self._open[stem] = loaded.indexes
        self.expire(now_ms)
        return loaded.indexes

    def expire(self, now_ms: int) -> None:
        """Remove the least recently used sets that are idle for longer than the TTL or exceed the size limit. The size
        limit never removes the last set."""
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
        self._remove_files(join(self.folder, stem))

    def _remove_files(self, stem: str) -> None:
        for ending in _KINDS.values():
            self._files.remove(stem + ending)

    def _open_indexes(self, segment: RemoteSegment, stem: str, size: int) -> RemoteIndexes:
        """Open the three files of a segment. Raise CorruptIndex if one is missing: it would be read as empty."""
        for ending in _KINDS.values():
            if not self._files.exists(stem + ending):
                raise CorruptIndex(stem + ending, "the file is missing")
        base = segment.start_offset
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
