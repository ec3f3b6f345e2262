"""Memory between two guard pages: one access outside it ends the process with SIGSEGV.

Compiled kernels check no bounds. In ordinary memory, a read of one byte past the input goes unnoticed; here it
ends the process. The bytes lie directly before the second guard page.

`guarded_bytes` makes a `bytes` object whose content ends there, for kernels that take nothing else. CPython keeps a
zero byte behind the content of such an object; this one has none, so a kernel that relies on it is found too.
"""

from __future__ import annotations

import ctypes
import mmap

_LIBRARY = ctypes.CDLL(None, use_errno=True)
_LIBRARY.mprotect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
_NO_ACCESS = 0  # PROT_NONE
_PAGE = mmap.PAGESIZE
_HEADER = bytes.__basicsize__ - 1  # size of a bytes object before its content
_REFERENCES = 1 << 20  # so many references that the object is never freed


class GuardedMemory:
    """Memory for up to `capacity` bytes. The next call overwrites the bytes of the previous one."""

    def __init__(self, capacity: int) -> None:
        self.capacity = (capacity + _HEADER + _PAGE) // _PAGE * _PAGE
        self._is_kept = False
        self._pages = mmap.mmap(-1, self.capacity + 2 * _PAGE)
        self._start = ctypes.addressof(ctypes.c_char.from_buffer(self._pages)) + _PAGE
        self.end = self._start + self.capacity
        for guard in (self._start - _PAGE, self.end):
            if _LIBRARY.mprotect(guard, _PAGE, _NO_ACCESS):
                raise OSError(ctypes.get_errno(), "mprotect failed")

    def room(self, size: int) -> memoryview:
        """Return `size` writable bytes that end at the guard page."""
        assert size <= self.capacity
        found = (ctypes.c_ubyte * size).from_address(self.end - size)
        found.memory = self  # type: ignore[attr-defined]  # the pages stay as long as a view of them
        return memoryview(found).cast("B")

    def view(self, data: bytes) -> memoryview:
        """Return a copy of the bytes that ends at the guard page."""
        found = self.room(len(data))
        found[:] = data
        return found

    def guarded_bytes(self, data: bytes) -> bytes:
        """Return an equal `bytes` object whose content ends at the guard page."""
        assert len(data) + _HEADER <= self.capacity
        if len(data) < 2:
            return data  # CPython has one shared object for each of these
        if not self._is_kept:
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._pages))  # a forged object may outlive this one
            self._is_kept = True
        self.view(data)
        at = self.end - len(data) - _HEADER
        ctypes.memmove(at, id(data), _HEADER)
        ctypes.c_ssize_t.from_address(at).value = _REFERENCES
        forged: bytes = ctypes.cast(at, ctypes.py_object).value
        return forged
