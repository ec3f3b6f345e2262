"""run_broker: a server as a process: build, listen, serve, drain on a signal, close.

SIGTERM and SIGINT drain: no new connections, no new requests, pending replies are sent, then the broker is closed.
A second signal ends the draining.
"""

from __future__ import annotations

import gc
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from types import FrameType
from typing import Final

from tailrace.server.broker_interface import BrokerBuilder
from tailrace.server.connections.descriptors import raise_soft_limit
from tailrace.server.loop.garbage import examine_objects_once
from tailrace.server.server import Server
from tailrace.server.settings import ServerSettings

STOP_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)
SWITCH_INTERVAL_S: Final = 0.0002


def run_broker(
    build: BrokerBuilder, settings: ServerSettings, on_ready: Callable[[Server], None] | None = None
) -> None:
    """Serve until a signal asks to stop; `on_ready` is called once clients can connect."""
    raise_soft_limit()
    server = Server(build, replace(settings, owns_process=True))
    gc.disable()
    try:
        server.open()
        examine_objects_once()
    finally:
        gc.enable()
    # A computing chore must not delay the loop by Python's default switch interval of 5 ms.
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    with stopped_by_signals(server):
        server.listen()
        if on_ready is not None:
            on_ready(server)
        server.run()


@contextmanager
def stopped_by_signals(server: Server) -> Iterator[None]:
    """Stop the server on SIGTERM and SIGINT within this context. For the main thread only."""
    came = 0

    def handle(number: int, frame: FrameType | None) -> None:
        nonlocal came
        came += 1
        if came == 1:
            server.request_stop()
        else:
            server.request_stop_now()

    before = {number: signal.signal(number, handle) for number in STOP_SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
