"""Groups of services that `building.py` builds together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tailrace.broker.coordination.coordinator_topics import CoordinatorTopics
from tailrace.broker.coordination.coordinators import Coordinators
from tailrace.broker.coordination.groups import Groups
from tailrace.broker.coordination.transaction_verification import TransactionVerification
from tailrace.broker.coordination.transactions import Transactions
from tailrace.broker.handling.long_requests import LongRequests
from tailrace.broker.handling.refusals import Refusals
from tailrace.broker.handling.request_chores import RequestChores
from tailrace.broker.handling.request_work import RequestWork
from tailrace.broker.handling.round import Round
from tailrace.broker.handling.throttling import Throttling
from tailrace.broker.replies import Replies
from tailrace.broker.shares.share_coordinator import ShareCoordinator
from tailrace.broker.shares.shares import Shares
from tailrace.broker.storage.cleaning import LogCleaning
from tailrace.broker.storage.config_updates import ConfigUpdates
from tailrace.broker.storage.cordoned_directories import CordonedDirectories
from tailrace.broker.storage.directory_moves import DirectoryMoves
from tailrace.broker.storage.disk_failures import DiskFailures
from tailrace.broker.storage.housekeeping import Housekeeping
from tailrace.diagnostics.internal_errors import InternalErrors
from tailrace.log.directories.log_directories import LogDirectories
from tailrace.log.directories.log_directory import LoadReport
from tailrace.replication.hosted_partitions import HostedPartitions
from tailrace.waiting.purgatory import Purgatory


class RequestParts(NamedTuple):
    """The services that requests and replies pass through."""

    internal_errors: InternalErrors
    purgatory: Purgatory
    current_round: Round
    throttling: Throttling
    chores: RequestChores
    replies: Replies
    refusals: Refusals
    long_requests: LongRequests
    request_work: RequestWork


class StorageParts(NamedTuple):
    """The opened logs of this broker and the partitions that it hosts."""

    logs: LogDirectories
    partitions: HostedPartitions
    failures: DiskFailures
    cordoned: CordonedDirectories
    load_reports: Sequence[LoadReport]


class CoordinationParts(NamedTuple):
    coordinators: Coordinators
    coordinator_topics: CoordinatorTopics
    groups: Groups
    transactions: Transactions
    transaction_verification: TransactionVerification
    share_coordinator: ShareCoordinator
    shares: Shares


class UpkeepParts(NamedTuple):
    """The services that maintain the logs in the background."""

    cleaning: LogCleaning | None
    moves: DirectoryMoves
    housekeeping: Housekeeping
    config_updates: ConfigUpdates
