"""Services: the long-lived parts of a broker, by name.

`startup/building.py` builds them in one pass. A handler names the services that it needs as keyword-only parameters
(`handler_binding.py`). Other parts get the services that they need as constructor arguments.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tailrace.broker.cluster.forwarding import Forwarding
from tailrace.broker.cluster.replication import Replication
from tailrace.broker.cluster.transaction_peers import TransactionPeers
from tailrace.broker.config.broker_config import BrokerConfig
from tailrace.broker.coordination.coordinator_topics import CoordinatorTopics
from tailrace.broker.coordination.coordinators import Coordinators
from tailrace.broker.coordination.groups import Groups
from tailrace.broker.coordination.transaction_verification import TransactionVerification
from tailrace.broker.coordination.transactions import Transactions
from tailrace.broker.events import Events
from tailrace.broker.handling.appends import Appends
from tailrace.broker.handling.long_requests import LongRequests
from tailrace.broker.handling.refusals import Refusals
from tailrace.broker.handling.request_chores import RequestChores
from tailrace.broker.handling.request_work import RequestWork
from tailrace.broker.handling.round import Round
from tailrace.broker.handling.throttling import Throttling
from tailrace.broker.replies import Replies
from tailrace.broker.requests.api_table import ApiRow
from tailrace.broker.requests.topics.encoded_topics import EncodedTopics
from tailrace.broker.security.authorizer import Authorizer
from tailrace.broker.security.permissions import Permissions
from tailrace.broker.shares.share_coordinator import ShareCoordinator
from tailrace.broker.shares.shares import Shares
from tailrace.broker.storage.cleaning import LogCleaning
from tailrace.broker.storage.config_updates import ConfigUpdates
from tailrace.broker.storage.cordoned_directories import CordonedDirectories
from tailrace.broker.storage.directory_moves import DirectoryMoves
from tailrace.broker.storage.disk_failures import DiskFailures
from tailrace.broker.storage.housekeeping import Housekeeping
from tailrace.broker.storage.image_publisher import ImagePublisher
from tailrace.broker.storage.remote.remote_logs import RemoteLogs
from tailrace.broker.storage.remote.remote_reads import RemoteReads
from tailrace.broker.storage.remote.store_calls import StoreCalls
from tailrace.diagnostics.internal_errors import InternalErrors
from tailrace.fetch.fetches import Fetches
from tailrace.log.directories.log_directories import LogDirectories
from tailrace.log.directories.log_directory import LoadReport
from tailrace.metadata.controller.controller import Controller
from tailrace.metadata.controller.local_controller import LocalController
from tailrace.metrics.histogram import Histogram
from tailrace.replication.hosted_partitions import HostedPartitions
from tailrace.replication.replica_settings import ReplicaSettings
from tailrace.waiting.outbox import Outbox
from tailrace.waiting.purgatory import Purgatory

if TYPE_CHECKING:  # few brokers use telemetry, and the import would slow down every start
    from tailrace.broker.metrics.client_telemetry import ClientTelemetry


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    config: BrokerConfig
    events: Events
    internal_errors: InternalErrors
    apis: Mapping[int, ApiRow]  # the APIs that are served, by key

    # Requests and replies
    purgatory: Purgatory
    current_round: Round
    throttling: Throttling
    chores: RequestChores
    replies: Replies
    refusals: Refusals
    long_requests: LongRequests
    request_work: RequestWork
    appends: Appends

    # Storage
    logs: LogDirectories
    partitions: HostedPartitions
    failures: DiskFailures
    cordoned: CordonedDirectories
    moves: DirectoryMoves
    housekeeping: Housekeeping
    config_updates: ConfigUpdates
    cleaning: LogCleaning | None  # None: log.cleaner.enable is false
    remote_logs: RemoteLogs | None  # None: without tiered storage
    remote_reads: RemoteReads | None
    store_calls: StoreCalls | None
    load_reports: Sequence[LoadReport]  # one for each log directory that was opened
    log_flushes: Histogram | None  # durations of flushes; None if they are not measured

    # Metadata
    controller: Controller
    local_controller: LocalController | None  # None: the controllers are other nodes
    forwarding: Forwarding | None  # to controllers that are other nodes
    publisher: ImagePublisher
    encoded_topics: EncodedTopics
    outbox: Outbox  # requests to other nodes

    # Replication and reading
    replicas: ReplicaSettings
    replication: Replication | None  # None: the cluster is this one node
    fetches: Fetches

    # Coordination
    coordinators: Coordinators
    coordinator_topics: CoordinatorTopics
    groups: Groups
    transactions: Transactions
    transaction_peers: TransactionPeers | None  # None: the cluster is this one node
    transaction_verification: TransactionVerification
    share_coordinator: ShareCoordinator
    shares: Shares

    # Security and metrics
    authorizer: Authorizer
    permissions: Permissions
    telemetry: ClientTelemetry | None  # None: clients may not push their metrics
