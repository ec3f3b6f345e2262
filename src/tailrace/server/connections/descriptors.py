"""Descriptors: how many the process may open, and how many of them are kept for files.

A quarter of the limit, and at least 64, is a reserve that no connection of a client touches: segments, indexes,
checkpoints, the metadata log and connections to other nodes use it. The rest, without what the process has open when
the server starts, is the largest number of connections, whatever max.connections says.

The system gives a new descriptor the lowest free number. So an accepted socket whose number lies in the reserve shows
that too many descriptors are in use, for files as well, and is closed at once.
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
_RESERVED_PART: Final = 4  # the limit divided by this
_LOGGER: Final = logging.getLogger("tailrace.server")


@dataclass(frozen=True, slots=True)
class Descriptors:
    """Bounds for sockets of clients."""

    connections_max: int = INT_MAX
    reserve_start: int = INT_MAX  # the lowest number of a descriptor that is reserved


def raise_soft_limit() -> None:
    """Let this process open as many files and sockets as its hard limit allows."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def current_descriptors() -> Descriptors:
    """Return the bounds that the process's limit and its open descriptors allow now."""
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if limit == resource.RLIM_INFINITY or limit > INT_MAX:
        return Descriptors()
    return descriptors_within(limit, len(os.listdir("/proc/self/fd")))


def descriptors_within(limit: int, in_use: int) -> Descriptors:
    """Return the bounds of a process that may open `limit` descriptors and has `in_use` open."""
    reserve = min(max(limit // _RESERVED_PART, RESERVE_MIN), limit // 2)
    found = Descriptors(max(limit - reserve - in_use, 1), limit - reserve)
    _LOGGER.info(
        "connections are limited by descriptors",
        extra=fields(connections_max=found.connections_max, descriptors_max=limit, reserved_for_files=reserve),
    )
    return found
