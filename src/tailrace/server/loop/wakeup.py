"""WakeUp: how another thread, or a signal, gets the loop out of its waiting."""

from __future__ import annotations

import os


class WakeUp:
    """An eventfd: readable from `set` until `clear`. Setting it is safe from any thread and any signal handler."""

    def __init__(self) -> None:
        self.descriptor = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)

    def set(self) -> None:
        os.eventfd_write(self.descriptor, 1)

    def clear(self) -> None:
        os.eventfd_read(self.descriptor)

    def close(self) -> None:
        os.close(self.descriptor)
