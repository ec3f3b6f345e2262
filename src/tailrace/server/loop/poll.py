"""Poll: waits for events of sockets. It is the system's epoll on Linux, and a `PortablePoll` elsewhere.

Both have the same methods and the same bits for events, so the loop does not know which one it uses. They differ in one
point: an epoll drops a closed descriptor, a `PortablePoll` does not. So `forget` must be called before a registered
descriptor is closed.
"""

from __future__ import annotations

import select
from typing import Final, Protocol

from tailrace.model.system_calls import lacks

READABLE: Final = select.POLLIN
WRITABLE: Final = select.POLLOUT
BROKEN: Final = select.POLLERR | select.POLLHUP  # always reported
_HAS_EPOLL: Final = not lacks(select, "epoll")


class Poll(Protocol):
    def register(self, fd: int, eventmask: int, /) -> None: ...
    def modify(self, fd: int, eventmask: int, /) -> None: ...
    def unregister(self, fd: int, /) -> None: ...
    def poll(self, timeout: float, /) -> list[tuple[int, int]]:
        """Wait for events, for some seconds at most. Return descriptors with the bits of their events."""

    def close(self) -> None: ...


class PortablePoll:
    """A Poll on the system call poll, of Linux, macOS and the BSDs. Its cost grows with the number of descriptors."""

    def __init__(self) -> None:
        self._poll = select.poll()
        self._interests: dict[int, int] = {}

    def register(self, descriptor: int, interest: int, /) -> None:
        self._poll.register(descriptor, interest)
        self._interests[descriptor] = interest

    def modify(self, descriptor: int, interest: int, /) -> None:
        self._poll.modify(descriptor, interest)
        self._interests[descriptor] = interest

    def unregister(self, descriptor: int, /) -> None:
        self._poll.unregister(descriptor)
        del self._interests[descriptor]

    def forget(self, descriptor: int) -> None:
        """Unregister a descriptor if it is registered."""
        if descriptor in self._interests:
            self.unregister(descriptor)

    def poll(self, timeout_s: float, /) -> list[tuple[int, int]]:
        events = self._poll.poll(timeout_s * 1_000)
        return [(descriptor, self._like_epoll(descriptor, mask)) for descriptor, mask in events]

    def _like_epoll(self, descriptor: int, mask: int) -> int:
        """Convert events to those of epoll: macOS reports a hang-up if the peer has only closed its sending direction.

        Linux reports that as readable. So a socket that hung up without an error is reported as ready for the events
        that it waits for. The next read or write then finds the end or the error.
        """
        interest = self._interests[descriptor]
        if mask & BROKEN == select.POLLHUP and interest:
            return mask & ~select.POLLHUP | interest
        return mask

    def close(self) -> None:
        """Do nothing: this poll has no descriptor of its own."""


def open_poll() -> Poll:
    return select.epoll() if _HAS_EPOLL else PortablePoll()


def forget(poll: Poll, descriptor: int) -> None:
    """Unregister a descriptor before it is closed, if the poll needs that."""
    if isinstance(poll, PortablePoll):
        poll.forget(descriptor)
