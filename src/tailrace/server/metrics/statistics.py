"""ServerStatistics: the counters and present state of the network layer."""

from __future__ import annotations

from dataclasses import dataclass

from tailrace.server.connections.acceptor import Acceptor
from tailrace.server.connections.connection import THROTTLED, WAITING, WRITING
from tailrace.server.connections.connections import Connections
from tailrace.server.loop.chores import Chores
from tailrace.server.metrics.request_meter import RequestMeter
from tailrace.server.receiving.receive_buffers import ReceiveArena
from tailrace.server.sending.slice_sender import SliceSender


@dataclass(frozen=True, slots=True)
class ServerStatistics:
    connections: int  # open connections
    waiting: int  # with a request at the broker
    writing: int  # with replies that the socket did not take yet
    throttled: int  # paused because of a quota
    muted: int  # not read for one of these reasons, though bytes are in the socket
    accepted: int
    refused: int  # closed after accept, because the address had too many or opened them too fast
    closed: dict[str, int]  # by reason
    paused_listeners: int
    bytes_in: int
    bytes_out: int
    pending_bytes: int  # of replies that the sockets did not take yet
    held_bytes: int  # of requests that are received but not handed over yet
    pinned_files: int
    requests: int
    replies: int
    passes: int
    kept_arenas: int  # receive buffers replaced because the broker kept views of them
    chores_unfinished: int
    chores_completed: int
    chores_failed: int


def take_statistics(
    connections: Connections,
    acceptor: Acceptor,
    slices: SliceSender,
    arena: ReceiveArena,
    chores: Chores,
    meter: RequestMeter,
) -> ServerStatistics:
    every = list(connections)
    return ServerStatistics(
        connections=len(every),
        waiting=sum(1 for connection in every if connection.hold & WAITING),
        writing=sum(1 for connection in every if connection.hold & WRITING),
        throttled=sum(1 for connection in every if connection.hold & THROTTLED),
        muted=sum(1 for connection in every if not connection.interest),
        accepted=acceptor.accepted,
        refused=acceptor.refused,
        closed=dict(connections.closed),
        paused_listeners=acceptor.paused,
        bytes_in=meter.bytes_in,
        bytes_out=meter.bytes_out,
        pending_bytes=sum(connection.output.size for connection in every),
        held_bytes=sum(len(connection.input) for connection in every),
        pinned_files=slices.pins,
        requests=meter.requests,
        replies=meter.replies,
        passes=meter.passes,
        kept_arenas=arena.replaced,
        chores_unfinished=chores.unfinished,
        chores_completed=chores.completed,
        chores_failed=chores.failures,
    )
