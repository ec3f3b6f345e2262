"""Every state that a crash could leave, rebuilt from a recorded trace.

At a crash point some operations are not yet covered by a sync: the *pending* ones. Each of them has one of these fates:

    kept      it reached the disk
    dropped   it did not
    torn      (a write) part of it did: a prefix; all but one sector; only its length, over zeros or over garbage

Fates are independent. A later write may be kept and an earlier one dropped. A name may be kept although an earlier
change of the same folder is not. Only a single create, remove or rename is all or nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from random import Random
from typing import NamedTuple

from tests.support.memory_files import resize, write_bytes
from tests.support.recording_files import (
    DataOperation,
    Image,
    Link,
    NameOperation,
    Operation,
    RecordingFiles,
    Rename,
    Sync,
    SyncFolder,
    Truncate,
    Unlink,
    Write,
)

# Far below a disk's 512 bytes, so that small batches span several sectors.
SECTOR = 64
_EXHAUSTIVE_LIMIT = 6  # up to this number of pending operations, all subsets are tried


class Fate(NamedTuple):
    """The fate of a pending operation: which bytes of a write were kept, and what is in place of the others."""

    kind: str
    start: int = 0
    end: int = 0

    def __str__(self) -> str:
        return f"{self.kind}[{self.start}:{self.end}]" if self.end else self.kind


KEPT = Fate("kept")
DROPPED = Fate("dropped")


class CrashState(NamedTuple):
    """The files and their bytes after a crash, and the fates that led to them."""

    point: int
    fates: dict[int, Fate]
    tree: dict[str, bytes]


class CrashPoint:
    """A crash after `index` operations of a trace."""

    def __init__(self, index: int, durable: Image, pending: list[tuple[int, Operation]]) -> None:
        self.index = index
        self._durable = durable
        self.pending = pending

    def state(self, fates: Mapping[int, Fate]) -> CrashState:
        """Return the state for the given fates. Pending operations without a fate, by index in the trace, are kept."""
        contents = dict(self._durable.contents)
        folders = {number: dict(names) for number, names in self._durable.folders.items()}
        for index, operation in self.pending:
            fate = fates.get(index, KEPT)
            if fate is DROPPED:
                continue
            if isinstance(operation, Write | Truncate):
                contents[operation.node] = apply_data(contents.get(operation.node, b""), operation, fate)
            elif isinstance(operation, Link | Unlink | Rename):
                apply_name(folders, operation)
        tree = dict(_flatten(Image(self._durable.root, contents, folders), self._durable.root, ""))
        return CrashState(self.index, dict(fates), tree)

    def states(self, rng: Random, *, effort: int = 1) -> Iterator[CrashState]:
        """Yield the states to try: all of them if few operations are pending, else a systematic choice."""
        indexes = [index for index, _ in self.pending]
        if len(indexes) <= _EXHAUSTIVE_LIMIT + effort - 1:
            for kept in product((KEPT, DROPPED), repeat=len(indexes)):
                yield self.state(dict(zip(indexes, kept, strict=True)))
        else:
            yield self.state({})
            yield self.state(dict.fromkeys(indexes, DROPPED))
            for index in indexes:
                if self._has_turn(index, effort):
                    yield self.state({index: DROPPED})
                    yield self.state({other: DROPPED for other in indexes if other != index})
        yield from self._torn_states(rng, effort)
        for _ in range((2 + len(indexes) // 4) * effort if indexes else 0):
            odds = rng.random()
            yield self.state({i: self._random_fate(rng, operation, odds) for i, operation in self.pending})

    def _has_turn(self, index: int, effort: int) -> bool:
        """Return True if an operation is tried alone: recent ones at every crash point, older ones at every third."""
        return effort > 1 or index > self.index - 4 or index % 3 == self.index % 3

    def _torn_states(self, rng: Random, effort: int) -> Iterator[CrashState]:
        """Yield states with a torn write: the newest write torn in every way, older ones in a few, with the rest kept
        or dropped.
        """
        for index, operation in self.pending:
            if not isinstance(operation, Write) or not self._has_turn(index, effort):
                continue
            fates = torn_fates(operation, every_byte=effort > 2)
            if index != self.index - 1 and effort < 3:
                fates = rng.sample(fates, min(effort, len(fates)))
            others = [other for other, _ in self.pending if other != index]
            for fate in fates:
                yield self.state({index: fate})
                if others:
                    yield self.state(dict.fromkeys(others, DROPPED) | {index: fate})

    def _random_fate(self, rng: Random, operation: Operation, odds: float) -> Fate:
        if rng.random() < odds:
            return KEPT
        if isinstance(operation, Write) and rng.random() < 0.3:
            return rng.choice(torn_fates(operation))
        return DROPPED


def crash_points(files: RecordingFiles, *, first: int = 0) -> Iterator[CrashPoint]:
    """Yield a crash before the first operation from `first` on, after it, after the next, … after the last."""
    image = files.base
    durable = Image(image.root, dict(image.contents), {n: dict(names) for n, names in image.folders.items()})
    for operation in files.trace:
        if isinstance(operation, Link) and operation.is_folder:
            durable.folders[operation.node] = {}
    pending: list[tuple[int, Operation]] = []
    for index, operation in enumerate(files.trace):
        if index >= first:
            yield CrashPoint(index, durable, pending)
            durable = Image(durable.root, dict(durable.contents), {n: dict(m) for n, m in durable.folders.items()})
        if isinstance(operation, Sync | SyncFolder):
            covered = [item for item in pending if _is_covered(item[1], operation)]
            pending = [item for item in pending if not _is_covered(item[1], operation)]
            for _, done in covered:
                if isinstance(done, Write | Truncate):
                    durable.contents[done.node] = apply_data(durable.contents.get(done.node, b""), done)
                elif isinstance(done, Link | Unlink | Rename):
                    apply_name(durable.folders, done)
        else:
            pending = [*pending, (index, operation)]
    yield CrashPoint(len(files.trace), durable, pending)


def _is_covered(operation: Operation, sync: Sync | SyncFolder) -> bool:
    if isinstance(sync, Sync):
        return isinstance(operation, Write | Truncate) and operation.node == sync.node
    return isinstance(operation, Link | Unlink | Rename) and operation.folder == sync.folder


def torn_fates(write: Write, *, every_byte: bool = False) -> list[Fate]:
    """Return the ways in which a write can be torn."""
    size = len(write.data)
    cuts = range(1, size) if every_byte else sorted({1, 11, 12, 60, 61, size // 2, size - 1} & set(range(1, size)))
    fates = [Fate("prefix", 0, cut) for cut in cuts]
    fates += [Fate("zeros"), Fate("garbage")]
    first = write.position // SECTOR * SECTOR
    sectors = [
        (max(start - write.position, 0), min(start + SECTOR - write.position, size))
        for start in range(first, write.position + size, SECTOR)
    ]
    if len(sectors) > 1:
        chosen = sectors if every_byte else {sectors[0], sectors[len(sectors) // 2], sectors[-1]}
        for start, end in sorted(chosen):
            fates.append(Fate("hole", start, end))
            # Only a sector that was never written may hold garbage; a sector that the file already had does not change.
            if (write.position + start) % SECTOR == 0:
                fates.append(Fate("junk", start, end))
    return fates


def apply_data(content: bytes, operation: DataOperation, fate: Fate = KEPT) -> bytes:
    result = bytearray(content)
    if isinstance(operation, Truncate):
        resize(result, operation.size)
        return bytes(result)
    position, data = operation.position, operation.data
    if fate.kind == "prefix":
        data = data[: fate.end]
    elif fate.kind != "kept":
        start, end = (fate.start, fate.end) if fate.end else (0, len(data))
        if fate.kind in ("garbage", "junk"):
            under = bytes((137 * n + 41) & 0xFF for n in range(start, end))
        else:
            # A sector that was not written keeps its old bytes, or zeros past the old end of the file.
            under = content[position + start : position + end].ljust(end - start, b"\0")
        data = data[:start] + under + data[end:]
    write_bytes(result, position, data)
    return bytes(result)


def apply_name(folders: dict[int, dict[str, int]], operation: NameOperation) -> None:
    names = folders[operation.folder]
    if isinstance(operation, Link):
        names[operation.name] = operation.node
    elif isinstance(operation, Unlink):
        names.pop(operation.name, None)
    else:
        # Its old name may never have reached the disk; the new name refers to the same file all the same.
        if names.get(operation.source) == operation.node:
            del names[operation.source]
        names[operation.target] = operation.node


def _flatten(image: Image, folder: int, prefix: str) -> Iterator[tuple[str, bytes]]:
    for name, node in sorted(image.folders[folder].items()):
        if node in image.folders:
            yield from _flatten(image, node, f"{prefix}{name}/")
            if not image.folders[node]:
                yield f"{prefix}{name}/", b""
        else:
            yield prefix + name, image.contents.get(node, b"")


def describe(state: CrashState, files: RecordingFiles) -> str:
    """Describe how a state came about, for a failing test."""
    lines = [f"crash after {state.point} of {len(files.trace)} operations; the last ones:"]
    start = max(state.point - 12, 0)
    lines += [
        f"  {index:4d}  {operation.describe(files.names)}"
        for index, operation in enumerate(files.trace[start : state.point], start)
    ]
    lines += ["unsynced operations that did not fully reach the disk:"]
    lines += [
        f"  {index:4d}  {files.trace[index].describe(files.names)}: {fate}"
        for index, fate in state.fates.items()
        if fate != KEPT
    ]
    return "\n".join(lines)
