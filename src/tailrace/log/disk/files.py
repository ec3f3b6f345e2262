"""Files: the only module that touches the disk.

`Files` and `File` are the interface of the file system that the log needs. `DiskFiles` is the real one. Tests replace
it with one that records or fails. Paths are plain strings.

Nothing is durable before it is synced: a file's bytes by `File.sync`, a name by `sync_directory`.

New files and folders are accessible to their owner only, whatever the process's umask is. `DiskFiles.set_umask` changes
that. Existing files keep their mode.
"""

from __future__ import annotations

import errno
import fcntl
import mmap
import os
import stat
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Final, NamedTuple, Protocol, runtime_checkable
from weakref import WeakValueDictionary

from tailrace.model.system_calls import lacks
from tailrace.records.batch import Buffer

PRIVATE_UMASK: Final = 0o077
WHOLE_BYTES_MAX: Final = 268_435_456  # of a file that is read as a whole: a metadata snapshot of millions of partitions
_HAS_PREADV: Final = not lacks(os, "preadv")
_HAS_FALLOCATE: Final = not lacks(os, "posix_fallocate")
_HAS_FDATASYNC: Final = not lacks(os, "fdatasync")
_FULL_SYNC: Final[int | None] = getattr(fcntl, "F_FULLFSYNC", None)  # of macOS, whose fsync leaves bytes in the drive


class Entry(NamedTuple):
    name: str
    is_directory: bool


class Space(NamedTuple):
    """The size of a file system in bytes, and the part that this process may still use."""

    total: int
    usable: int


class File(Protocol):
    """An open file, read and written by position."""

    path: str

    def size(self) -> int: ...
    def read(self, position: int, size: int) -> bytes:
        """Return up to `size` bytes, fewer only at the end of the file."""

    def read_into(self, position: int, buffer: memoryview) -> int: ...
    def write(self, position: int, data: Buffer) -> None:
        """Write all of `data`, or raise OSError. After an error a part of it may be written."""

    def map(self) -> Buffer:
        """Return a read-only view of the whole file without copying it."""

    def allocate(self, size: int) -> None:
        """Set the file's size to `size` bytes, with zeros after its current end."""

    def truncate(self, size: int) -> None: ...
    def sync(self) -> None: ...
    def fileno(self) -> int: ...
    def release(self) -> None:
        """Close the descriptor. The next use opens the file again."""

    def close(self) -> None: ...


@runtime_checkable
class ReadsAhead(Protocol):
    """A remote file. A reader that announces the next range waits less, and no more than that range is fetched."""

    def will_read(self, start: int, end: int) -> None: ...


@runtime_checkable
class RemoteFiles(Protocol):
    """Remote files. A caller that needs many of them waits less if it requests all at the same time."""

    def run_together(self, work: Iterable[Callable[[], object]]) -> None: ...


class Files(Protocol):
    def open(self, path: str, *, create: bool = False, read_only: bool = False) -> File: ...
    def entries(self, path: str) -> list[Entry]: ...
    def exists(self, path: str) -> bool: ...
    def size(self, path: str) -> int: ...
    def modified_ms(self, path: str) -> int: ...
    def set_modified_ms(self, path: str, modified_ms: int) -> None: ...
    def read(self, path: str) -> bytes: ...
    def write(self, path: str, data: Buffer, *, sync: bool) -> None:
        """Replace the whole content of a file."""

    def replace(self, source: str, target: str) -> None: ...
    def remove(self, path: str) -> bool:
        """Remove a file. Return True if there was one."""

    def make_directory(self, path: str) -> None: ...
    def remove_directory(self, path: str) -> None:
        """Remove a folder with the files in it."""

    def sync_directory(self, path: str) -> None: ...
    def space(self, path: str) -> Space:
        """Return the space of the file system of a folder."""

    def lock(self, path: str) -> File:
        """Lock a file for this process until it is closed. Raise BlockingIOError if another process holds it."""


def write_atomically(files: Files, path: str, data: Buffer) -> None:
    """Replace a small file as a whole. After a crash it has either the old content or the new."""
    replace_whole(files, path, data)
    files.sync_directory(os.path.dirname(path))


def replace_whole(files: Files, path: str, data: Buffer) -> None:
    """Replace a small file as a whole. After a crash it may have the old content, until the directory is synced."""
    temporary = path + ".tmp"
    files.write(temporary, data, sync=True)
    files.replace(temporary, path)


class DiskFile:
    """A file on disk. The descriptor is opened on first use, so that unused partitions need none."""

    __slots__ = ("_fd", "_flags", "_opened", "mode", "path")

    def __init__(self, path: str, flags: int) -> None:
        self.path = path
        self.mode = 0o666 & ~PRIVATE_UMASK  # of a new file
        self._flags = flags
        self._fd = -1
        self._opened: Callable[[], object] | None = None  # called when the file was opened

    def report_opening(self, opened: Callable[[], object]) -> None:
        self._opened = opened
        if self._fd >= 0:
            opened()

    def fileno(self) -> int:
        if self._fd < 0:
            self._fd = _open_regular(self.path, self._flags, self.mode)
            if self._opened is not None:
                self._opened()
        return self._fd

    def size(self) -> int:
        return os.fstat(self.fileno()).st_size

    def read(self, position: int, size: int) -> bytes:
        data = os.pread(self._fd if self._fd >= 0 else self.fileno(), size, position)
        if len(data) == size or not data:
            return data
        parts = [data]
        missing = size - len(data)
        while missing:
            data = os.pread(self.fileno(), missing, position + size - missing)
            if not data:
                break
            parts.append(data)
            missing -= len(data)
        return b"".join(parts)

    def read_into(self, position: int, buffer: memoryview) -> int:
        done = 0
        while done < len(buffer):
            count = read_into(self.fileno(), buffer[done:], position + done)
            if count == 0:
                break
            done += count
        return done

    def write(self, position: int, data: Buffer) -> None:
        written = os.pwrite(self._fd if self._fd >= 0 else self.fileno(), data, position)
        if written == len(data):
            return
        view = memoryview(data)
        while written < len(view):
            count = os.pwrite(self.fileno(), view[written:], position + written)
            if count == 0:
                raise OSError(errno.EIO, "nothing was written", self.path)
            written += count

    def map(self) -> Buffer:
        if self.size() == 0:
            return b""
        return memoryview(mmap.mmap(self.fileno(), 0, access=mmap.ACCESS_READ))

    def allocate(self, size: int) -> None:
        if size > self.size():
            if _HAS_FALLOCATE:
                os.posix_fallocate(self.fileno(), 0, size)
            else:
                os.ftruncate(self.fileno(), size)

    def truncate(self, size: int) -> None:
        os.ftruncate(self.fileno(), size)

    def sync(self) -> None:
        if _HAS_FDATASYNC:
            os.fdatasync(self.fileno())
        else:
            _sync_whole(self.fileno())

    def release(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
            self._flags &= ~os.O_CREAT

    close = release

    def __del__(self) -> None:
        """Close the descriptor with the object, because readers of a directory drop files without closing them."""
        self.release()


class DiskFiles:
    """The operating system's files."""

    _umask = PRIVATE_UMASK

    def set_umask(self, umask: int) -> None:
        """Create new files and folders with the permissions that a umask allows."""
        self._umask = umask

    def open(self, path: str, *, create: bool = False, read_only: bool = False) -> DiskFile:
        flags = os.O_CLOEXEC | (os.O_RDONLY if read_only else os.O_RDWR) | (os.O_CREAT if create else 0)
        file = self._new_file(path, flags)
        file.mode = 0o666 & ~self._umask
        if create:
            file.fileno()
        return file

    def _new_file(self, path: str, flags: int) -> DiskFile:
        return DiskFile(path, flags)

    def entries(self, path: str) -> list[Entry]:
        with os.scandir(path) as found:
            return [Entry(entry.name, entry.is_dir()) for entry in found]

    def exists(self, path: str) -> bool:
        return os.path.exists(path)

    def size(self, path: str) -> int:
        return os.stat(path).st_size

    def modified_ms(self, path: str) -> int:
        return os.stat(path).st_mtime_ns // 1_000_000

    def set_modified_ms(self, path: str, modified_ms: int) -> None:
        os.utime(path, ns=(modified_ms * 1_000_000, modified_ms * 1_000_000))

    def read(self, path: str) -> bytes:
        with open(_open_regular(path, os.O_RDONLY | os.O_CLOEXEC), "rb", buffering=0) as file:
            size = os.fstat(file.fileno()).st_size
            if size > WHOLE_BYTES_MAX:
                raise OSError(errno.EFBIG, f"the file has {size:,} bytes; the limit is {WHOLE_BYTES_MAX:,}", path)
            return file.read()

    def write(self, path: str, data: Buffer, *, sync: bool) -> None:
        file = DiskFile(path, os.O_CLOEXEC | os.O_RDWR | os.O_CREAT | os.O_TRUNC)
        file.mode = 0o666 & ~self._umask
        try:
            file.write(0, data)
            if sync:
                file.sync()
        finally:
            file.close()

    def replace(self, source: str, target: str) -> None:
        os.replace(source, target)

    def remove(self, path: str) -> bool:
        try:
            os.remove(path)
        except FileNotFoundError:
            return False
        return True

    def make_directory(self, path: str) -> None:
        os.makedirs(path, 0o777 & ~self._umask, exist_ok=True)

    def remove_directory(self, path: str) -> None:
        with os.scandir(path) as found:
            entries = [(entry.path, entry.is_dir(follow_symlinks=False)) for entry in found]
        for inner, is_directory in entries:
            if is_directory:
                self.remove_directory(inner)
            else:
                os.remove(inner)  # removes a symbolic link, not its target
        os.rmdir(path)

    def sync_directory(self, path: str) -> None:
        descriptor = os.open(path or ".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def space(self, path: str) -> Space:
        found = os.statvfs(path)
        return Space(found.f_frsize * found.f_blocks, found.f_frsize * found.f_bavail)

    def lock(self, path: str) -> DiskFile:
        # The operating system's lock excludes other processes, but not this one. Closing a second descriptor would
        # release it.
        if os.path.exists(path) and (holder := _held.get(_identity(os.stat(path)))) and holder.is_open:
            raise BlockingIOError(errno.EWOULDBLOCK, "this process already holds the lock", path)
        file = _HeldFile(path, os.O_CLOEXEC | os.O_RDWR | os.O_CREAT)
        file.mode = 0o666 & ~self._umask
        try:
            # Apache Kafka takes the same kind of lock, so the two exclude each other.
            fcntl.lockf(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            file.close()
            raise
        _held[_identity(os.fstat(file.fileno()))] = file
        return file


class _HeldFile(DiskFile):
    """A file whose lock this process holds until it is closed."""

    @property
    def is_open(self) -> bool:
        return self._fd >= 0


_held: WeakValueDictionary[tuple[int, int], _HeldFile] = WeakValueDictionary()


def read_into(descriptor: int, buffer: memoryview, position: int) -> int:
    """Fill a buffer from a position of an open file. Return the number of bytes, which may be smaller."""
    if _HAS_PREADV:
        return os.preadv(descriptor, [buffer], position)
    data = os.pread(descriptor, len(buffer), position)
    buffer[: len(data)] = data
    return len(data)


def _sync_whole(descriptor: int) -> None:
    """Sync a file where there is no fdatasync."""
    if _FULL_SYNC is not None:
        with suppress(OSError):  # a file system that does not know it
            fcntl.fcntl(descriptor, _FULL_SYNC)
            return
    os.fsync(descriptor)


def zeros(size: int) -> memoryview:
    """Return memory of zeros. Pages that nothing is written to take no room."""
    return memoryview(mmap.mmap(-1, size) if size else b"")


def _open_regular(path: str, flags: int, mode: int = 0) -> int:
    """Open a regular file. Raise OSError for anything else: a read of a pipe or a device may never end."""
    descriptor = os.open(path, flags | os.O_NONBLOCK, mode)
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return descriptor
    os.close(descriptor)
    raise OSError(errno.EINVAL, "not a regular file", path)


def _identity(found: os.stat_result) -> tuple[int, int]:
    return found.st_dev, found.st_ino


def join(*parts: str) -> str:
    return "/".join(parts)
