"""What a Python process keeps that Spark uses again: what was imported, and connections to clusters.

Spark runs tasks, and on the driver the beginning and the end of each micro-batch, in Python processes that wait for
more when they are done. A micro-batch asks a cluster some ten things from four of them; whoever has to connect first
and ask for versions, brokers and coordinators asks as many again.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from contextlib import contextmanager

from tailrace.client.cluster.cluster import ClusterClient
from tailrace.client.cluster.coordinators import Coordinators
from tailrace.client.settings import ClientSettings

_is_settled = False
# By process too: a connection is of no use in a fork of it.
_idle: dict[tuple[int, str, ClientSettings], Coordinators] = {}


def settle() -> None:
    """Spark's worker collects garbage after every task; what was imported until now need not be looked at again."""
    global _is_settled
    if not _is_settled:
        gc.freeze()
        _is_settled = True


@contextmanager
def kept_cluster(bootstrap: str, settings: ClientSettings) -> Iterator[Coordinators]:
    """A cluster to ask, and its coordinators: one that this process asked before if there is one, else a new one.

    It is the caller's alone. Connections and coordinators are remembered, topics are not: they get more partitions.
    What an error has come out of is not used again.
    """
    place = (os.getpid(), bootstrap, settings)
    found = _idle.pop(place, None)
    if found is not None and not found.cluster.is_connected:
        found.cluster.close()
        found = None
    found = found or Coordinators(ClusterClient(bootstrap, settings))
    is_good = False
    try:
        yield found
        is_good = True
    finally:
        if is_good and place not in _idle:
            found.cluster.forget_topics()
            _idle[place] = found
        else:
            found.cluster.close()
    settle()


def close_idle() -> None:
    """End the connections that nobody uses now."""
    while _idle:
        _idle.popitem()[1].cluster.close()
