"""AivenStore: remote segments in the layout of Aiven's plugin, without encryption.

The manifest is written last and deleted first, so an object without a manifest belongs to an unfinished copy or to an
unfinished deletion.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator

import zstandard

from tailrace.log.disk.files import Files
from tailrace.records.batch import Buffer
from tailrace.tiers.remote_segment import RemoteSegment
from tailrace.tiers.stores.aiven import aiven_layout
from tailrace.tiers.stores.aiven.blobs import Blobs
from tailrace.tiers.stores.aiven.chunk_index import ChunkIndex, WrongManifest, unpack
from tailrace.tiers.stores.aiven.manifest import INDEX_ORDER, MANIFEST_MAX, Manifest, parse_manifest
from tailrace.tiers.stores.countdown import Countdown
from tailrace.tiers.stores.remote_store import (
    IndexKind,
    RemoteResourceNotFound,
    RemoteStorageError,
    SegmentFiles,
)

CHUNK_SIZE = 4 * 1024 * 1024
_MANIFESTS_MAX = 1024  # cached
_PIECE = 1024 * 1024


class AivenStore:
    def __init__(
        self,
        blobs: Blobs,
        files: Files,
        clock_ms: Callable[[], int],
        *,
        prefix: str = "",
        chunk_size: int = CHUNK_SIZE,
        compress: bool = False,
    ) -> None:
        self._blobs = blobs
        self._files = files
        self._clock_ms = clock_ms
        self._prefix = prefix
        self._chunk_size = chunk_size
        self._compress = compress
        self._manifests: OrderedDict[str, Manifest] = OrderedDict()

    def copy_segment(self, segment: RemoteSegment, files: SegmentFiles, timeout_ms: int) -> bytes | None:
        key = self._key(segment)
        countdown = Countdown(timeout_ms, self._clock_ms, f"the copy of {key} to {self._blobs.place}")
        try:
            sizes: list[int] = []
            size = self._files.size(files.log)
            pieces = self._compressed(files.log, sizes) if self._compress else self._pieces(files.log, _PIECE)
            self._blobs.write(key + aiven_layout.LOG, pieces, countdown.remaining)
            indexes = self._indexes(files)
            data = b"".join(indexes.values())
            self._blobs.write(key + aiven_layout.INDEXES, [data], countdown.remaining)
            chunks = ChunkIndex(self._chunk_size, size, tuple(sizes) if self._compress else None)
            manifest = Manifest(chunks, _positions(indexes), self._compress, segment)
            self._blobs.write(key + aiven_layout.MANIFEST, [manifest.encode()], countdown.remaining)
        except TimeoutError:
            countdown.check()
            raise RemoteStorageError(f"{key} cannot be copied to {self._blobs.place}: a request timed out") from None
        except OSError as error:
            raise RemoteStorageError(f"{key} cannot be copied to {self._blobs.place}: {error.strerror}") from None
        return None

    def fetch_segment(self, segment: RemoteSegment, start: int, end: int | None = None) -> bytes:
        key = self._key(segment)
        manifest = self._manifest(key)
        chunks = manifest.chunks
        end = min(chunks.file_size if end is None else end, chunks.file_size)
        if start >= end:
            return b""
        if chunks.stored_sizes is None:
            return self._read(key + aiven_layout.LOG, start, end)
        first, last = start // chunks.chunk_size, (end - 1) // chunks.chunk_size
        starts = chunks.stored_starts
        stored = self._read(key + aiven_layout.LOG, starts[first], starts[last + 1])
        try:
            found = b"".join(
                unpack(stored[starts[one] - starts[first] : starts[one + 1] - starts[first]], chunks.original_size(one))
                for one in range(first, last + 1)
            )
        except WrongManifest as error:
            raise RemoteStorageError(f"{key}{aiven_layout.LOG} in {self._blobs.place}: {error}") from None
        before = first * chunks.chunk_size
        return found[start - before : end - before]

    def fetch_index(self, segment: RemoteSegment, kind: IndexKind) -> bytes:
        key = self._key(segment)
        place = self._manifest(key).indexes.get(kind)
        if place is None:
            raise RemoteResourceNotFound(f"{key} in {self._blobs.place} has no index of kind {kind.name}")
        position, size = place
        return self._read(key + aiven_layout.INDEXES, position, position + size) if size else b""

    def delete_segment(self, segment: RemoteSegment) -> None:
        key = self._key(segment)
        self._manifests.pop(key, None)
        try:
            self._blobs.delete([key + aiven_layout.MANIFEST])
            self._blobs.delete([key + aiven_layout.INDEXES, key + aiven_layout.LOG])
        except OSError as error:
            raise RemoteStorageError(f"{key} cannot be deleted from {self._blobs.place}: {error.strerror}") from None

    def _key(self, segment: RemoteSegment) -> str:
        return aiven_layout.segment_key(self._prefix, segment)

    def _manifest(self, key: str) -> Manifest:
        manifest = self._manifests.get(key)
        if manifest is None:
            try:
                manifest = parse_manifest(self._read(key + aiven_layout.MANIFEST, 0, MANIFEST_MAX))
            except WrongManifest as error:
                name = key + aiven_layout.MANIFEST
                raise RemoteStorageError(f"{name} in {self._blobs.place} cannot be used: {error}") from None
            self._manifests[key] = manifest
            while len(self._manifests) > _MANIFESTS_MAX:
                self._manifests.popitem(last=False)
        return manifest

    def _read(self, key: str, start: int, end: int) -> bytes:
        try:
            return self._blobs.read(key, start, end)
        except FileNotFoundError:
            raise RemoteResourceNotFound(f"there is no object {key} in {self._blobs.place}") from None
        except OSError as error:
            raise RemoteStorageError(f"{key} in {self._blobs.place} cannot be read: {error.strerror}") from None

    def _pieces(self, path: str, size: int) -> Iterator[Buffer]:
        """Yield a file in pieces, so that memory is bounded."""
        file = self._files.open(path, read_only=True)
        try:
            position = 0
            while piece := file.read(position, size):
                position += len(piece)
                yield piece
        finally:
            file.close()

    def _compressed(self, path: str, sizes: list[int]) -> Iterator[Buffer]:
        """Yield the compressed chunks of a file, and add their sizes to a list."""
        compressor = zstandard.ZstdCompressor()
        for chunk in self._pieces(path, self._chunk_size):
            packed = compressor.compress(chunk)
            sizes.append(len(packed))
            yield packed

    def _indexes(self, files: SegmentFiles) -> dict[IndexKind, bytes]:
        """Return the indexes of a segment, in the order of their object."""
        found = {
            IndexKind.OFFSET: self._files.read(files.offset_index),
            IndexKind.TIMESTAMP: self._files.read(files.time_index),
            IndexKind.PRODUCER_SNAPSHOT: self._files.read(files.producer_snapshot),
            IndexKind.LEADER_EPOCH: files.leader_epochs,
        }
        if files.transaction_index is not None:
            found[IndexKind.TRANSACTION] = self._files.read(files.transaction_index)
        assert tuple(found) == INDEX_ORDER[: len(found)]
        return found


def _positions(indexes: dict[IndexKind, bytes]) -> dict[IndexKind, tuple[int, int]]:
    positions, position = {}, 0
    for kind, data in indexes.items():
        positions[kind] = position, len(data)
        position += len(data)
    return positions
