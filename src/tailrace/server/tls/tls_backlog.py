"""TlsBacklog: connections whose received TLS bytes are not decrypted yet, because a buffer was full.

No poll reports these connections again, so they join the events of the next pass.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tailrace.server.loop.poll import READABLE

if TYPE_CHECKING:
    from tailrace.server.connections.connection import Connection


class TlsBacklog(set["Connection"]):
    def is_readable(self) -> bool:
        """Return True if a connection in the backlog is not held."""
        return any(not one.hold for one in self)

    def joined(self, events: list[tuple[int, int]]) -> list[tuple[int, int]]:
        """Return the events of a poll and one for each connection that is not held. A connection returns to the backlog
        if bytes are left after the pass."""
        polled = {descriptor for descriptor, _ in events}
        ready = [one for one in self if not one.hold]
        self.difference_update(ready)
        return events + [(one.descriptor, READABLE) for one in ready if one.descriptor not in polled]
