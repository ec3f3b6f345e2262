"""FaultyFiles: any file system, made to fail on demand.

    files = FaultyFiles(MemoryFiles())
    files.fail("read", errno.EIO, path=".index")     every read of an index file
    files.fail("sync", errno.EIO, skip=2, times=1)   the third sync, once
    files.free_bytes = 100                           the disk takes 100 bytes more; what fits of a write is written
    files.max_open = 4                               descriptors
    files.heal()

Operations: open, create, read, write, truncate, sync, entries, stat, replace, remove, make_directory, sync_directory.
Errors carry the path, as the operating system's do.
"""

from __future__ import annotations

import errno
import os
from dataclasses import dataclass

from tailrace.log.disk.files import Entry, File, Files, Space
from tailrace.records.batch import Buffer


@dataclass(slots=True)
class _Fault:
    operation: str
    code: int
    path: str
    skip: int
    times: int | None

    def strikes(self, operation: str, path: str) -> bool:
        if operation != self.operation or self.path not in path or self.times == 0:
            return False
        if self.skip:
            self.skip -= 1
            return False
        if self.times is not None:
            self.times -= 1
        return True


class FaultyFile:
    def __init__(self, owner: FaultyFiles, file: File) -> None:
        self._owner = owner
        self._file = file
        self._is_open = False

    @property
    def path(self) -> str:
        return self._file.path

    @path.setter
    def path(self, path: str) -> None:
        self._file.path = path

    def _use(self, operation: str) -> File:
        if not self._is_open:
            self._owner.take_descriptor(self.path)
            self._is_open = True
        self._owner.strike(operation, self.path)
        return self._file

    def size(self) -> int:
        return self._use("stat").size()

    def read(self, position: int, size: int) -> bytes:
        return self._use("read").read(position, size)

    def read_into(self, position: int, buffer: memoryview) -> int:
        return self._use("read").read_into(position, buffer)

    def map(self) -> Buffer:
        return self._use("read").map()

    def write(self, position: int, data: Buffer) -> None:
        file = self._use("write")
        fitting = self._owner.take_space(position + len(data) - file.size(), len(data))
        file.write(position, memoryview(data)[:fitting])
        if fitting < len(data):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), self.path)

    def allocate(self, size: int) -> None:
        file = self._use("write")
        grown = size - file.size()
        if self._owner.take_space(grown, max(grown, 0)) < grown:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), self.path)
        file.allocate(size)

    def truncate(self, size: int) -> None:
        file = self._use("truncate")
        self._owner.give_space(file.size() - size)
        file.truncate(size)

    def sync(self) -> None:
        self._use("sync").sync()

    def fileno(self) -> int:
        return self._use("stat").fileno()

    def release(self) -> None:
        if self._is_open:
            self._owner.open_count -= 1
            self._is_open = False
        self._file.release()

    def close(self) -> None:
        self.release()
        self._file.close()


class FaultyFiles:
    def __init__(self, files: Files) -> None:
        self.files = files
        self.open_count = 0
        self.heal()

    def heal(self) -> None:
        """Stop all failures."""
        self._faults: list[_Fault] = []
        self.free_bytes: int | None = None
        self.max_open: int | None = None

    def fail(self, operation: str, code: int, *, path: str = "", skip: int = 0, times: int | None = None) -> None:
        """Make an operation fail where the path contains `path`: after `skip` successes, `times` times or
        from then on.
        """
        self._faults.append(_Fault(operation, code, path, skip, times))

    def strike(self, operation: str, path: str) -> None:
        for fault in self._faults:
            if fault.strikes(operation, path):
                raise OSError(fault.code, os.strerror(fault.code), path)

    def take_descriptor(self, path: str) -> None:
        self.strike("open", path)
        if self.max_open is not None and self.open_count >= self.max_open:
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE), path)
        self.open_count += 1

    def take_space(self, growth: int, wanted: int) -> int:
        """Return how many of the wanted bytes fit, of which `growth` are new."""
        if self.free_bytes is None or growth <= 0:
            return wanted
        missing = max(growth - self.free_bytes, 0)
        self.free_bytes -= growth - missing
        return max(wanted - missing, 0)

    def give_space(self, size: int) -> None:
        if self.free_bytes is not None:
            self.free_bytes += size

    def open(self, path: str, *, create: bool = False, read_only: bool = False) -> FaultyFile:
        if create and not self.files.exists(path):
            self.strike("create", path)
        if not create:
            return FaultyFile(self, self.files.open(path, read_only=read_only))
        self.take_descriptor(path)
        try:
            file = FaultyFile(self, self.files.open(path, create=True))
        except OSError:
            self.open_count -= 1
            raise
        file._is_open = True
        return file

    def entries(self, path: str) -> list[Entry]:
        self.strike("entries", path)
        return self.files.entries(path)

    def exists(self, path: str) -> bool:
        return self.files.exists(path)

    def size(self, path: str) -> int:
        self.strike("stat", path)
        return self.files.size(path)

    def modified_ms(self, path: str) -> int:
        self.strike("stat", path)
        return self.files.modified_ms(path)

    def set_modified_ms(self, path: str, modified_ms: int) -> None:
        self.files.set_modified_ms(path, modified_ms)

    def read(self, path: str) -> bytes:
        file = self.open(path, read_only=True)
        try:
            return file.read(0, file.size())
        finally:
            file.close()

    def write(self, path: str, data: Buffer, *, sync: bool) -> None:
        file = self.open(path, create=True)
        try:
            file.truncate(0)
            file.write(0, data)
            if sync:
                file.sync()
        finally:
            file.close()

    def replace(self, source: str, target: str) -> None:
        self.strike("replace", source)
        self.files.replace(source, target)

    def remove(self, path: str) -> bool:
        if not self.files.exists(path):
            return False
        self.strike("remove", path)
        size = self.files.size(path)
        if self.files.remove(path):
            self.give_space(size)
            return True
        return False

    def make_directory(self, path: str) -> None:
        self.strike("make_directory", path)
        self.files.make_directory(path)

    def remove_directory(self, path: str) -> None:
        self.strike("remove", path)
        self.files.remove_directory(path)

    def sync_directory(self, path: str) -> None:
        self.strike("sync_directory", path)
        self.files.sync_directory(path)

    def space(self, path: str) -> Space:
        self.strike("stat", path)
        space = self.files.space(path)
        return space if self.free_bytes is None else space._replace(usable=self.free_bytes)

    def lock(self, path: str) -> File:
        self.strike("create", path)
        return self.files.lock(path)
