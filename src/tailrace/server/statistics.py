"""ServerStatistics: what the network layer has done so far and holds now."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ServerStatistics:
    connections: int  # open now
    waiting: int  # of them, with a request at the broker
    writing: int  # of them, with replies that the socket did not take yet
    throttled: int  # of them, pausing because of a quota
    muted: int  # of them, with bytes that are left in the socket for one of these reasons
    accepted: int
    refused: int  # accepted and closed, because the address had its maximum
    closed: dict[str, int]  # by reason
    paused_listeners: int
    bytes_in: int
    bytes_out: int
    pending_bytes: int  # replies that the sockets did not take yet
    held_bytes: int  # requests received and not handed over yet
    pinned_files: int
    requests: int
    replies: int
    passes: int
    kept_arenas: int  # receive buffers that the broker kept views of
    chores_unfinished: int
    chores_completed: int
    chores_failed: int
