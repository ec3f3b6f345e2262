"""RemoteCounters: the traffic of a topic with the remote store, since the start of the broker."""

from __future__ import annotations

from dataclasses import dataclass, fields


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

    def add(self, other: RemoteCounters) -> None:
        """Add the counts of another topic."""
        for one in fields(self):
            setattr(self, one.name, getattr(self, one.name) + getattr(other, one.name))
