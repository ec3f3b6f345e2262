"""Givens: what the core must not get for itself, given to a broker by its process: disk, chance, threads, network."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from tailrace.broker.cluster.quorum_startup import Network
from tailrace.broker.security.authorizer import Authorizer
from tailrace.broker.security.token_validators import FetchKeys
from tailrace.broker.storage.cleaning import Work
from tailrace.log.disk.files import Files
from tailrace.metrics.histogram import Histogram
from tailrace.protocol.message import Message


@dataclass(frozen=True, slots=True, kw_only=True)
class Givens:
    files: Files
    new_id: Callable[[], bytes]  # returns 16 random bytes
    next_int: Callable[[int], int]  # returns a random number below its argument
    submit: Callable[[Work], None]  # runs a chore
    has_workers: bool  # False: chores run on the spot
    submit_fetch: Callable[[Work], None]  # runs `fetch_keys`
    fetch_keys: FetchKeys | None  # reads the keys of identity providers, for OAUTHBEARER
    is_turn_over: Callable[[], bool]  # True if a request that can pause should do so
    work_ns: Callable[[], int]  # the clock by which request_percentage is measured
    network: Network | None  # for a broker whose controllers are other nodes
    bound: Mapping[str, int] | None  # the ports of listeners on port 0
    default_host: str
    cluster_id: str | None
    first_records: Sequence[Message]  # the first records of the metadata log of a new cluster
    has_telemetry: bool  # True if clients may push their metrics
    log_flushes: Histogram | None  # how long flushes took
    authorizer: Authorizer | None  # in place of the configured one
