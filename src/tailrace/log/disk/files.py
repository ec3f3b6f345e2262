"""Files: the only module that touches the disk.

`Files` and `File` say what the log needs of a file system; `DiskFiles` is the real one. Tests put a recording or
failing one in its place. Paths are plain strings.

Nothing here is durable until it is synced: a file's bytes by `File.sync`, a name by `sync_directory`.

New files and folders are private to their owner, whatever the process's umask is; `DiskFiles.set_umask` opens them.
What is there already keeps its mode.
"""

from __future__ import annotations

import errno
import fcntl
import mmap
import os
import stat
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple, Protocol, runtime_checkable
from weakref import WeakValueDictionary

from tailrace.records.batch import Buffer

PRIVATE_UMASK: Final = 0o077


class Entry(NamedTuple):
    name: str
    is_directory: bool


class Space(NamedTuple):
    """Bytes of a file system: all, and those that this process may still take."""

    total: int
    usable: int


class File(Protocol):
    """An open file, read and written by position."""

    path: str

    def size(self) -> int: ...
    def read(self, position: int, size: int) -> bytes:
        """Up to `size` bytes; fewer only at the end of the file."""

    def read_into(self, position: int, buffer: memoryview) -> int: ...
    def write(self, position: int, data: Buffer) -> None:
        """All of `data`, or an OSError; a part of it may be there after an error."""

    def map(self) -> Buffer:
        """The whole file's bytes without copying them, for reading."""

    def allocate(self, size: int) -> None:
        """Give the file `size` bytes, zeros past its present end."""

    def truncate(self, size: int) -> None: ...
    def sync(self) -> None: ...
    def fileno(self) -> int: ...
    def release(self) -> None:
        """Let go of the descriptor; the next use opens the file again."""

    def close(self) -> None: ...


@runtime_checkable
class ReadsAhead(Protocol):
    """A file whose bytes are far away: who says what comes next waits less, and gets no more than that."""

    def will_read(self, start: int, end: int) -> None: ...


@runtime_checkable
class FarFiles(Protocol):
    """Files that are far away: who asks for many of them waits less if it asks for all at the same time."""

    def at_once(self, work: Iterable[Callable[[], object]]) -> None: ...


class Files(Protocol):
    def open(self, path: str, *, create: bool = False, read_only: bool = False) -> File: ...
    def entries(self, path: str) -> list[Entry]: ...
    def exists(self, path: str) -> bool: ...
    def size(self, path: str) -> int: ...
    def modified_ms(self, path: str) -> int: ...
    def set_modified_ms(self, path: str, modified_ms: int) -> None: ...
    def read(self, path: str) -> bytes: ...
    def write(self, path: str, data: Buffer, *, sync: bool) -> None:
        """The file's whole content, in place of what it had."""

    def replace(self, source: str, target: str) -> None: ...
    def remove(self, path: str) -> bool:
        """Remove a file; says whether there was one."""

    def make_directory(self, path: str) -> None: ...
    def remove_directory(self, path: str) -> None:
        """Remove a folder with the files in it."""

    def sync_directory(self, path: str) -> None: ...
    def space(self, path: str) -> Space:
        """Of the file system that a folder is on."""

    def lock(self, path: str) -> File:
        """Hold a file for this process until it is closed; BlockingIOError if another process holds it."""


def write_atomically(files: Files, path: str, data: Buffer) -> None:
    """Replace a small file as a whole: after a crash it holds the old content or the new, never a mix."""
    replace_whole(files, path, data)
    files.sync_directory(os.path.dirname(path))


def replace_whole(files: Files, path: str, data: Buffer) -> None:
    """The same, but it may be the old one until somebody syncs the directory."""
    temporary = path + ".tmp"
    files.write(temporary, data, sync=True)
    files.replace(temporary, path)


class DiskFile:
    """A file on disk. The descriptor is opened on first use, so that thousands of partitions cost none."""

    __slots__ = ("_fd", "_flags", "mode", "path")

    def __init__(self, path: str, flags: int) -> None:
        self.path = path
        self.mode = 0o666 & ~PRIVATE_UMASK  # of a file that is made
        self._flags = flags
        self._fd = -1

    def fileno(self) -> int:
        if self._fd < 0:
            self._fd = _open_regular(self.path, self._flags, self.mode)
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
            count = os.preadv(self.fileno(), [buffer[done:]], position + done)
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
            os.posix_fallocate(self.fileno(), 0, size)

    def truncate(self, size: int) -> None:
        os.ftruncate(self.fileno(), size)

    def sync(self) -> None:
        os.fdatasync(self.fileno())

    def release(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
            self._flags &= ~os.O_CREAT

    close = release

    def __del__(self) -> None:
        """Readers of a directory open what they meet and let it go: its descriptor goes with it."""
        self.release()


class DiskFiles:
    """The operating system's files."""

    _umask = PRIVATE_UMASK

    def set_umask(self, umask: int) -> None:
        """Make new files and folders with the permissions that a umask leaves."""
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
                os.remove(inner)  # of a symbolic link, the link and not what it names
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
        # The system's lock keeps other processes out, not this one; and to close a second descriptor would end it.
        if os.path.exists(path) and (holder := _held.get(_identity(os.stat(path)))) and holder.is_open:
            raise BlockingIOError(errno.EWOULDBLOCK, "this process holds it", path)
        file = _HeldFile(path, os.O_CLOEXEC | os.O_RDWR | os.O_CREAT)
        file.mode = 0o666 & ~self._umask
        try:
            # The same kind of lock that Apache Kafka takes, so that the two keep out of each other's way.
            fcntl.lockf(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            file.close()
            raise
        _held[_identity(os.fstat(file.fileno()))] = file
        return file


class _HeldFile(DiskFile):
    """A file that this process holds the lock of, until it is closed."""

    @property
    def is_open(self) -> bool:
        return self._fd >= 0


_held: WeakValueDictionary[tuple[int, int], _HeldFile] = WeakValueDictionary()


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
