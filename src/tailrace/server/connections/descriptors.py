"""Descriptors: the process's limit of open files, and the part of it that is reserved for files.

A third of the limit, and at least 64, is a reserve that no connection of a client touches: segments, indexes,
checkpoints, the metadata log and connections to other nodes use it. Three quarters of it are for the segments of
partitions (`log/segments/open_segments.py`). The rest of the limit, without what the process has open when the server
starts, is the largest number of connections, whatever max.connections says.

The system gives a new descriptor the lowest free number. So an accepted socket whose number lies in the reserve shows
that too many descriptors are in use (by connections and files), and is closed at once.
"""

from __future__ import annotations

import logging
import os
import resource
from dataclasses import dataclass
from typing import Final

from tailrace.model.log_fields import fields
from tailrace.model.topic_config import INT_MAX

RESERVE_MIN: Final = 64
OPEN_MAX: Final = 10_240  # macOS's OPEN_MAX
_RESERVED_PART: Final = 3  # the limit divided by this
_SEGMENTS_PART: Final = 12  # the number of open segments is the limit divided by this; each has three descriptors
_LOGGER: Final = logging.getLogger("tailrace.server")


@dataclass(frozen=True, slots=True)
class Descriptors:
    """Bounds for sockets of clients."""

    connections_max: int = INT_MAX
    reserve_start: int = INT_MAX  # the lowest reserved descriptor number


def raise_soft_limit() -> None:
    """Let this process open as many files and sockets as its hard limit allows."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == hard:
        return
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    except (ValueError, OSError):  # macOS reports no hard limit, and refuses a soft limit above OPEN_MAX
        if soft < OPEN_MAX:
            resource.setrlimit(resource.RLIMIT_NOFILE, (OPEN_MAX, hard))


def open_segments_max() -> int:
    """Return how many segments of partitions may have open files."""
    return _limit() // _SEGMENTS_PART


def _limit() -> int:
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return INT_MAX if limit == resource.RLIM_INFINITY else min(limit, INT_MAX)


def current_descriptors() -> Descriptors:
    """Return the bounds that the process's limit and its open descriptors allow now."""
    limit = _limit()
    if limit == INT_MAX:
        return Descriptors()
    return descriptors_within(limit, open_descriptors())


def open_descriptors() -> int:
    """Return the number of open descriptors, including the one that is needed to count them."""
    return len(os.listdir("/proc/self/fd" if os.path.exists("/proc/self/fd") else "/dev/fd"))


def descriptors_within(limit: int, in_use: int) -> Descriptors:
    """Return the bounds of a process that may open `limit` descriptors and has `in_use` open."""
    reserve = min(max(limit // _RESERVED_PART, RESERVE_MIN), limit // 2)
    found = Descriptors(max(limit - reserve - in_use, 1), limit - reserve)
    _LOGGER.info(
        "connections are limited by descriptors",
        extra=fields(connections_max=found.connections_max, descriptors_max=limit, reserved_for_files=reserve),
    )
    return found
