"""ServiceBuilder: builds the services of a broker, each from the ones built before.

requests        replies, refusals, long requests, work on worker threads
storage         logs, hosted partitions, cleaning, moves, housekeeping
cluster         replication and requests to other brokers; None if the cluster is this one node
coordination    groups, transactions, share groups
security        authorizer and permissions
"""

from __future__ import annotations

import logging
from functools import partial

from tailrace.broker.cluster.quorum_startup import ClusterParts, cluster_parts
from tailrace.broker.config.authorizer_config import authorizer_of
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
from tailrace.broker.handling.throttling import Throttling, windows_of
from tailrace.broker.replies import Replies
from tailrace.broker.requests.api_table import API_TABLE, TELEMETRY_TABLE
from tailrace.broker.requests.topics.encoded_topics import EncodedTopics
from tailrace.broker.security.authorizer import AllowAll
from tailrace.broker.security.fetch_rights import FetchRights
from tailrace.broker.security.permissions import Permissions
from tailrace.broker.services import Services
from tailrace.broker.shares.share_coordinator import ShareCoordinator
from tailrace.broker.shares.shares import Shares, ShareWork
from tailrace.broker.startup.environment import Environment
from tailrace.broker.startup.parts import CoordinationParts, RequestParts, StorageParts, UpkeepParts
from tailrace.broker.startup.remote_building import RemoteParts, remote_parts
from tailrace.broker.storage.cleaning import LogCleaning
from tailrace.broker.storage.config_updates import ConfigUpdates
from tailrace.broker.storage.cordoned_directories import CordonedDirectories
from tailrace.broker.storage.directory_moves import DirectoryMoves
from tailrace.broker.storage.disk_failures import DiskFailures
from tailrace.broker.storage.housekeeping import Housekeeping, Intervals
from tailrace.broker.storage.image_publisher import ImagePublisher
from tailrace.broker.storage.load_proposals import LoadProposals
from tailrace.broker.storage.storage_startup import Storage, load_logs
from tailrace.diagnostics.internal_errors import InternalErrors
from tailrace.fetch.fetches import Fetches
from tailrace.fetch.preferred_replica import selector_of
from tailrace.fetch.read import PartitionReader
from tailrace.fetch.sessions import FetchSessions
from tailrace.log.compaction.cleaner import CleanerSettings
from tailrace.log.directories.log_directories import LogDirectories
from tailrace.metadata.controller.local_controller import LocalController
from tailrace.metadata.controller.remote_controller import RemoteController
from tailrace.metadata.image.image import MetadataImage
from tailrace.quota.replication_quota import ReplicationQuota
from tailrace.replication.fetching.throttles import LeaderThrottle
from tailrace.replication.hosted_partitions import HostedPartitions
from tailrace.replication.replica_settings import ReplicaSettings
from tailrace.waiting.outbox import Outbox
from tailrace.waiting.purgatory import Purgatory

_log = logging.getLogger("tailrace.broker.broker")


class ServiceBuilder:
    """Builder of the services. The metadata is loaded and the directories are locked before."""

    def __init__(
        self,
        environment: Environment,
        config: BrokerConfig,
        events: Events,
        storage: Storage,
        controller: LocalController | RemoteController,
        outbox: Outbox,
        now_ms: int,
    ) -> None:
        self._environment = environment
        self._config = config
        self._events = events
        self._storage = storage
        self._controller = controller
        self._outbox = outbox
        self._now_ms = now_ms

    def _image(self) -> MetadataImage:
        return self._controller.image

    def build(self) -> tuple[Services, ClusterParts | None]:
        """Build everything, and open the logs."""
        config, events, controller = self._config, self._events, self._controller
        requests = self._requests()
        stored = self._stored(requests)
        cluster = self._cluster(requests, stored)
        upkeep = self._upkeep(requests, stored)
        remote = self._remote(requests, stored, upkeep)
        coordination = self._coordination(requests, stored, cluster, remote)
        replicas = ReplicaSettings(
            broker_id=config.node_id,
            image=self._image,
            broker_epoch=lambda: controller.broker_epoch,
            replica_lag_time_max_ms=config.integer("replica.lag.time.max.ms"),
            on_proposal=events.isr_proposed,
        )
        publisher = ImagePublisher(
            config,
            stored.logs,
            stored.partitions,
            requests.purgatory,
            replicas,
            requests.throttling,
            coordination.coordinators,
            events,
        )
        configured = self._environment.authorizer or authorizer_of(config.static)
        authorizer = configured or AllowAll()
        telemetry, apis = None, API_TABLE
        if self._environment.has_telemetry:
            from tailrace.broker.metrics.client_telemetry import ClientTelemetry

            telemetry = ClientTelemetry(config.integer("telemetry.max.bytes"), self._environment.new_id)
            apis = {**API_TABLE, **TELEMETRY_TABLE}
        services = Services(
            config=config,
            events=events,
            apis=apis,
            **requests._asdict(),
            appends=_appends(requests, stored),
            **stored._asdict(),
            **upkeep._asdict(),
            **coordination._asdict(),
            **remote._asdict(),
            log_flushes=self._environment.log_flushes,
            controller=controller,
            local_controller=controller if isinstance(controller, LocalController) else None,
            forwarding=None if cluster is None else cluster.forwarding,
            publisher=publisher,
            encoded_topics=EncodedTopics(),
            outbox=self._outbox,
            replicas=replicas,
            replication=None if cluster is None else cluster.replication,
            fetches=self._fetches(requests, stored, FetchRights(configured) if configured else None, remote),
            transaction_peers=None if cluster is None else cluster.transaction_peers,
            authorizer=authorizer,
            permissions=Permissions(authorizer),
            telemetry=telemetry,
        )
        return services, cluster

    def _requests(self) -> RequestParts:
        internal_errors = InternalErrors(_log)
        purgatory = Purgatory(self._events.operation_failed)
        current_round = Round(purgatory)
        throttling = Throttling(self._config, self._environment.work_ns)
        chores = RequestChores(self._environment.submit)
        replies = Replies(throttling, purgatory, current_round, chores, internal_errors)
        refusals = Refusals(replies, internal_errors)
        return RequestParts(
            internal_errors,
            purgatory,
            current_round,
            throttling,
            chores,
            replies,
            refusals,
            LongRequests(replies, refusals, chores, self._environment.is_turn_over),
            RequestWork(replies, refusals, self._environment.submit),
        )

    def _stored(self, requests: RequestParts) -> StorageParts:
        """Open the logs."""
        config, controller, events = self._config, self._controller, self._events
        partitions = HostedPartitions(image=self._image, on_failure=events.partition_failed)
        logs = LogDirectories(
            self._storage.directories, unusable=self._storage.unusable, on_failure=events.directory_failed
        )
        failures = DiskFailures(
            logs,
            partitions,
            requests.purgatory,
            controller,
            ids=self._storage.ids,
            metadata_path=config.metadata_log_dir,
        )
        cordoned = CordonedDirectories(config, logs, controller)
        cordoned.apply(controller.image)
        reports = load_logs(logs, config, controller.image, failures, self._now_ms)
        if self._environment.has_workers:
            for directory in logs.online:
                directory.run_work_with(self._environment.submit, partial(events.directory_failed, directory))
        return StorageParts(logs, partitions, failures, cordoned, reports)

    def _cluster(self, requests: RequestParts, stored: StorageParts) -> ClusterParts | None:
        roles = self._config.roles
        if not isinstance(self._controller, RemoteController) and not (roles.serves_brokers and roles.has_broker):
            return None
        return cluster_parts(
            self._config,
            self._controller,
            self._outbox,
            stored.logs,
            stored.partitions,
            requests.replies,
            requests.current_round,
            now_ms=self._now_ms,
        )

    def _coordination(
        self, requests: RequestParts, stored: StorageParts, cluster: ClusterParts | None, remote: RemoteParts
    ) -> CoordinationParts:
        config, controller, partitions = self._config, self._controller, stored.partitions
        purgatory, appended = requests.purgatory, requests.current_round.appended
        topics = CoordinatorTopics(config, controller, None if cluster is None else cluster.forwarding)
        peers = None if cluster is None else cluster.transaction_peers
        coordinators = Coordinators(self._environment.is_turn_over)
        new_id, submit = self._environment.new_id, self._environment.submit
        groups = Groups(config, self._image, partitions, purgatory, coordinators, appended, new_id, submit)
        transactions = Transactions(
            config,
            controller,
            partitions,
            purgatory,
            coordinators,
            appended,
            peers,
            self._now_ms,
        )
        share_coordinator = ShareCoordinator(
            config,
            self._image,
            partitions,
            purgatory,
            coordinators,
            appended,
            topics.ensure_share_state,
            self._now_ms,
        )
        share_peers = None if cluster is None else cluster.share_peers
        return CoordinationParts(
            coordinators,
            topics,
            groups,
            transactions,
            TransactionVerification(config, controller, partitions, transactions, peers),
            share_coordinator,
            Shares(
                config,
                self._image,
                partitions,
                purgatory,
                share_coordinator,
                self._outbox,
                share_peers,
                ShareWork(self._environment.submit, remote.read_now),
            ),
        )

    def _fetches(
        self,
        requests: RequestParts,
        stored: StorageParts,
        rights: FetchRights | None,
        remote: RemoteParts,
    ) -> Fetches:
        config = self._config
        quota = self._replication_quota("replication.quota.window", "leader.replication.throttled.rate")
        reader = PartitionReader(
            stored.partitions,
            select_replica=selector_of(config.text("replica.selector.class")),
            quota=LeaderThrottle(stored.partitions, config.node_id, quota),
            remote=remote.remote_reads,
        )
        sessions = FetchSessions(
            requests.purgatory,
            lambda: 1 + self._environment.next_int(2**31 - 1),
            slots=config.integer("max.incremental.fetch.session.cache.slots"),
        )
        return Fetches(
            reader,
            sessions,
            requests.purgatory,
            self._image,
            authorizer=rights,
            max_bytes=config.integer("fetch.max.bytes"),
        )

    def _remote(self, requests: RequestParts, stored: StorageParts, upkeep: UpkeepParts) -> RemoteParts:
        return remote_parts(
            self._environment,
            self._config,
            self._controller,
            stored.partitions,
            requests.purgatory,
            requests.current_round.appended,
            upkeep.config_updates,
            self._now_ms,
        )

    def _upkeep(self, requests: RequestParts, stored: StorageParts) -> UpkeepParts:
        config, environment, logs = self._config, self._environment, stored.logs
        cleaning = self._cleaning(logs) if config.flag("log.cleaner.enable") else None
        moves = DirectoryMoves(
            environment.files,
            logs,
            stored.partitions,
            requests.purgatory,
            self._controller,
            environment.submit,
            self._replication_quota(
                "alter.log.dirs.replication.quota.window", "replica.alter.log.dirs.io.max.bytes.per.second"
            ),
            cleaning,
        )
        housekeeping = Housekeeping(
            logs,
            requests.purgatory,
            stored.failures,
            Intervals(
                retention_ms=config.integer("log.retention.check.interval.ms"),
                flush_ms=config.integer("log.flush.scheduler.interval.ms"),
                checkpoint_ms=config.integer("log.flush.offset.checkpoint.interval.ms"),
                high_watermark_ms=config.integer("replica.high.watermark.checkpoint.interval.ms"),
            ),
            take_loads=LoadProposals(environment.files, stored.partitions, requests.purgatory).take,
            now_ms=self._now_ms,
            is_turn_over=environment.is_turn_over,
        )
        updates = ConfigUpdates(config, stored.partitions, environment.is_turn_over)
        return UpkeepParts(cleaning, moves, housekeeping, updates)

    def _cleaning(self, logs: LogDirectories) -> LogCleaning:
        config = self._config
        return LogCleaning(
            self._environment.files,
            logs,
            self._environment.submit,
            CleanerSettings(
                dedupe_buffer_bytes=config.integer("log.cleaner.dedupe.buffer.size"),
                load_factor=config.number("log.cleaner.io.buffer.load.factor"),
                io_buffer_bytes=config.integer("log.cleaner.io.buffer.size"),
                salt=self._environment.new_id(),
            ),
            backoff_ms=config.integer("log.cleaner.backoff.ms"),
            now_ms=self._now_ms,
        )

    def _replication_quota(self, windows: str, rate: str) -> ReplicationQuota:
        return ReplicationQuota(
            windows_of(self._config, windows), lambda: self._config.current_integer(rate, self._image())
        )


def _appends(requests: RequestParts, stored: StorageParts) -> Appends:
    return Appends(
        stored.partitions, requests.purgatory, requests.current_round, requests.replies, requests.internal_errors
    )
