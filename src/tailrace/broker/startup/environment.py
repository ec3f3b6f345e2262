"""Environment: disk, random numbers, threads and network, which the process provides to the broker.

The broker's own code must not open them itself (see `ARCHITECTURE.md`), so tests can replace each of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from tailrace.broker.cluster.quorum_startup import Network
from tailrace.broker.security.authorizer import Authorizer
from tailrace.broker.security.token_validators import FetchKeys
from tailrace.log.disk.files import Files
from tailrace.metrics.histogram import Histogram
from tailrace.protocol.message import Message
from tailrace.tiers.steps import Work
from tailrace.tiers.stores.remote_store import RemoteStore
from tailrace.waiting.chore import Chore


@dataclass(frozen=True, slots=True)
class RemoteHost:
    """Remote stores and threads, which the process provides for tiered storage."""

    # Opens the remote store that a class name of Kafka and the settings with the prefix `rsm.config.` describe.
    open_store: Callable[[str, Mapping[str, str]], RemoteStore]
    submit: Callable[[str, Work, int], None]  # runs work on a thread of a lane, which has up to that many threads
    abandon: Callable[[str, Work], None] = lambda lane, work: None  # replaces the thread of work that does not return


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    files: Files
    open_segments_max: int  # how many segments of partitions may have open files
    new_id: Callable[[], bytes]  # returns 16 random bytes
    next_int: Callable[[int], int]  # returns a random number below its argument

    submit: Callable[[Chore], None]  # runs a chore on a worker thread
    has_workers: bool  # False: there are no worker threads, and `submit` runs a chore at once
    remote: RemoteHost | None  # remote stores and their threads; None: without tiered storage
    submit_fetch: Callable[[Chore], None]  # runs `fetch_keys`
    fetch_keys: FetchKeys | None  # fetches the signing keys of identity providers, for OAUTHBEARER

    is_turn_over: Callable[[], bool]  # returns True if a running request should pause
    work_ns: Callable[[], int]  # the clock for the quota request_percentage

    network: Network | None  # None if this node is its own controller
    bound: Mapping[str, int] | None  # the ports of listeners on port 0
    default_host: str
    cluster_id: str | None
    first_records: Sequence[Message]  # the first records of the metadata log of a new cluster
    has_telemetry: bool  # True if clients may push their metrics
    log_flushes: Histogram | None  # records the durations of flushes
    authorizer: Authorizer | None  # replaces the configured authorizer
