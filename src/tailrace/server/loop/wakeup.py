"""WakeUp: wakes the waiting loop from another thread, or from a signal."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Final

from tailrace.model.system_calls import lacks

_HAS_EVENTFD: Final = not lacks(os, "eventfd")
_ONE: Final = (1).to_bytes(8, "little")  # an eventfd takes a number; a pipe takes any bytes
_READ_BYTES_MAX: Final = 4_096


class WakeUp:
    """An eventfd, or a pipe on systems without it: readable from `set` until `clear`.

    Setting it is safe from any thread and any signal handler.
    """

    def __init__(self) -> None:
        if _HAS_EVENTFD:
            self.descriptor = self._writing = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        else:
            self.descriptor, self._writing = os.pipe()
            os.set_blocking(self.descriptor, False)
            os.set_blocking(self._writing, False)

    def set(self) -> None:
        with suppress(BlockingIOError):  # a full pipe is readable already
            os.write(self._writing, _ONE)

    def clear(self) -> None:
        os.read(self.descriptor, _READ_BYTES_MAX)

    def close(self) -> None:
        os.close(self.descriptor)
        if self._writing != self.descriptor:
            os.close(self._writing)
