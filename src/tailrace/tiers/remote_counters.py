"""RemoteCounters: the traffic of a topic with the remote store, since the start of the broker."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class RemoteCounters:
    copied_bytes: int = 0
    copy_requests: int = 0
    copy_errors: int = 0
    fetched_bytes: int = 0
    fetch_requests: int = 0
    fetch_errors: int = 0
    delete_requests: int = 0
    delete_errors: int = 0
