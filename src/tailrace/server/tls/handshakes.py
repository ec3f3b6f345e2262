"""Handshakes: the TLS handshakes that continue at the end of a pass.

A step of a handshake takes milliseconds of computation. So a pass continues handshakes only until it is late, and at
least one. The poll reports the others again. A thousand clients that connect at once delay each other, and no client
that is connected already.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from tailrace.server.connections.connection import HANDSHAKE
from tailrace.server.loop.turn import Turn

if TYPE_CHECKING:
    from tailrace.server.connections.connection import Connection


class Handshakes(list["Connection"]):
    def __init__(self, turn: Turn, lost: Callable[[Connection, str, Exception], None]) -> None:
        """`lost` closes a connection after an exception."""
        super().__init__()
        self._turn = turn
        self._lost = lost

    def carry_on(self) -> None:
        """Continue the handshakes of this pass until the pass is late."""
        for connection in self:
            if not connection.hold & HANDSHAKE:
                continue  # it was closed in this pass
            try:
                connection.shake_hands()
            except BlockingIOError:
                pass
            except Exception as error:
                self._lost(connection, "receive failed", error)
            if self._turn.is_late():
                break
        self.clear()
