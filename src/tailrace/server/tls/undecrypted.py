"""Undecrypted: connections with bytes of TLS that were received and not decrypted yet, for want of room.

No poll tells of them any more, so they join the events of the next pass.
"""

from __future__ import annotations

from select import EPOLLIN
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tailrace.server.connections.connection import Connection


class Undecrypted(set["Connection"]):
    def may_go_on(self) -> bool:
        """Whether one of them is not held."""
        return any(not one.hold for one in self)

    def joined(self, events: list[tuple[int, int]]) -> list[tuple[int, int]]:
        """The events of a poll, and one for each of those that are not held. They come back if there is still more."""
        polled = {descriptor for descriptor, _ in events}
        ready = [one for one in self if not one.hold]
        self.difference_update(ready)
        return events + [(one.descriptor, EPOLLIN) for one in ready if one.descriptor not in polled]
