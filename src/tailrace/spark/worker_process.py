"""Keeps connections to clusters in Python processes that Spark reuses.

Spark runs tasks, and on the driver the start and the end of each micro-batch, in Python processes that it reuses. A
micro-batch sends about ten requests from four processes. Without kept connections, the requests for versions, brokers
and coordinators would double that number.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from contextlib import contextmanager

from tailrace.client.cluster.cluster_client import ClusterClient
from tailrace.client.cluster.coordinators import Coordinators
from tailrace.client.settings import ClientSettings

_is_frozen = False
# The key contains the process id, because a connection cannot be used in a forked process.
_idle: dict[tuple[int, str, ClientSettings], Coordinators] = {}


def freeze_imports() -> None:
    """Freeze imported objects: Spark's worker collects garbage after every task and need not scan them again."""
    global _is_frozen
    if not _is_frozen:
        gc.freeze()
        _is_frozen = True


@contextmanager
def reused_cluster(bootstrap: str, settings: ClientSettings) -> Iterator[Coordinators]:
    """Yield a cluster and its coordinators: an idle one of this process if there is one, else a new one.

    Only the caller uses it. Connections and coordinators are kept. Topics are not, because partitions may be added.
    After an error it is closed instead of kept.
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
    freeze_imports()


def close_idle() -> None:
    """Close the idle connections."""
    while _idle:
        _idle.popitem()[1].cluster.close()
