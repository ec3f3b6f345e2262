"""open_broker: a broker on its log directories, new or existing.

1. lock the directories, and format new ones
2. read the metadata log; become the controller in a new epoch, or follow the controller quorum
3. open the partition logs, and recover them after an unclean stop
4. build the services and register the listeners of events
5. host the partitions that the metadata assigns to this broker, and register the broker
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from tailrace.broker.broker import Broker
from tailrace.broker.cluster.quorum_startup import (
    ClusterParts,
    Network,
    catch_up,
    join_cluster,
    open_remote_controller,
    start_beside_controller,
)
from tailrace.broker.config.broker_changes import check_broker_change
from tailrace.broker.config.broker_config import BrokerConfig
from tailrace.broker.config.remote_config import check_no_tiered_topics
from tailrace.broker.dispatcher import Dispatcher
from tailrace.broker.events import Events
from tailrace.broker.handling.timed_parts import TimedParts
from tailrace.broker.security.authorizer import Authorizer
from tailrace.broker.security.guard import SaslGuard
from tailrace.broker.security.standard_authorizer import StandardAuthorizer
from tailrace.broker.security.token_validators import FetchKeys, token_validators
from tailrace.broker.services import Services
from tailrace.broker.startup.building import ServiceBuilder
from tailrace.broker.startup.environment import Environment, RemoteHost
from tailrace.broker.storage.disk_failures import LogDirectoriesFailed
from tailrace.broker.storage.storage_startup import Storage, prepare_storage
from tailrace.log.directories.log_directories import DuplicateLog
from tailrace.log.directories.shards_file import ShardedDirectory
from tailrace.log.disk.checkpoints import CorruptCheckpoint
from tailrace.log.disk.directory_lock import DirectoryInUse
from tailrace.log.disk.files import Files
from tailrace.log.segments.indexes.index_file import CorruptIndex
from tailrace.log.segments.open_segments import SEGMENTS_MAX
from tailrace.metadata.controller.local_controller import LocalController
from tailrace.metadata.controller.remote_controller import RemoteController
from tailrace.metadata.image.registrations import Endpoint, InconsistentMetadata
from tailrace.metadata.storage.metadata_log import MetadataLog, NotTheOnlyVoter
from tailrace.metadata.storage.metadata_snapshot import UnreadableSnapshot
from tailrace.metadata.storage.storage_format import WrongDirectory
from tailrace.metrics.histogram import Histogram
from tailrace.model.errors import KafkaError
from tailrace.model.log_fields import fields
from tailrace.model.topic_config import InvalidConfig
from tailrace.protocol.errors import ProtocolError
from tailrace.protocol.message import Message
from tailrace.records.batch import CorruptBatch
from tailrace.waiting.chore import Chore, run_now
from tailrace.waiting.outbox import Outbox

if TYPE_CHECKING:
    from tailrace.broker.cluster.controller_listener import ControllerListener

# Errors that an operator has to resolve before the broker can start. The message of each explains the cause.
REFUSALS = (
    InvalidConfig,
    KafkaError,  # the controller refuses the registration: the cluster uses a feature that this broker lacks
    LogDirectoriesFailed,
    DirectoryInUse,
    ShardedDirectory,
    DuplicateLog,
    WrongDirectory,
    NotTheOnlyVoter,
    UnreadableSnapshot,
    InconsistentMetadata,
    CorruptBatch,
    CorruptCheckpoint,
    CorruptIndex,
    ProtocolError,
)

_log = logging.getLogger(__name__)


def open_broker(
    files: Files,
    config: BrokerConfig,
    *,
    now_ms: int,
    new_id: Callable[[], bytes],
    next_int: Callable[[int], int],
    bound: Mapping[str, int] | None = None,
    default_host: str = "localhost",
    submit: Callable[[Chore], None] | None = None,
    is_turn_over: Callable[[], bool] = lambda: False,
    cluster_id: str | None = None,
    work_ns: Callable[[], int] = lambda: 0,
    network: Network | None = None,
    first_records: Sequence[Message] = (),
    fetch_keys: FetchKeys | None = None,
    submit_fetch: Callable[[Chore], None] | None = None,
    remote: RemoteHost | None = None,
    has_telemetry: bool = False,
    log_flushes: Histogram | None = None,
    authorizer: Authorizer | None = None,
    open_segments_max: int = SEGMENTS_MAX,
) -> Broker:
    """Open a broker. `environment.py` explains the parameters. Without `submit`, chores run at once, at `now_ms`."""
    chores = submit or partial(run_now, now_ms=now_ms)
    environment = Environment(
        files=files,
        open_segments_max=open_segments_max,
        new_id=new_id,
        next_int=next_int,
        submit=chores,
        has_workers=submit is not None,
        submit_fetch=submit_fetch or chores,
        remote=remote,
        fetch_keys=fetch_keys,
        is_turn_over=is_turn_over,
        work_ns=work_ns,
        network=network,
        bound=bound,
        default_host=default_host,
        cluster_id=cluster_id,
        first_records=first_records,
        has_telemetry=has_telemetry,
        log_flushes=log_flushes,
        authorizer=authorizer,
    )
    return _open(environment, config, now_ms)


def _open(environment: Environment, config: BrokerConfig, now_ms: int) -> Broker:
    has_local_controller = not config.roles.is_broker_only
    controller_endpoints = (
        config.controller_endpoints(environment.bound, environment.default_host) if has_local_controller else None
    )
    storage = prepare_storage(
        environment.files,
        config,
        cluster_id=environment.cluster_id,
        controller_endpoints=controller_endpoints,
        new_id=environment.new_id,
        open_segments_max=environment.open_segments_max,
        first_records=environment.first_records,
        now_ms=now_ms,
    )
    events, outbox = Events(), Outbox()
    controller: LocalController | RemoteController
    if controller_endpoints is not None:
        controller = _local_controller(environment, config, storage, controller_endpoints, events, now_ms)
    else:
        assert environment.network is not None, "a broker whose controllers are other nodes needs a network"
        controller = open_remote_controller(
            environment.files,
            config,
            storage.identity,
            outbox=outbox,
            endpoints=config.endpoints(environment.bound, environment.default_host),
            directories=storage.ids,
            new_id=environment.new_id,
            network=environment.network,
            listener=events.metadata_changed,
            now_ms=now_ms,
        )
        now_ms = catch_up(controller, environment.network, now_ms)
    if config.remote is None:
        check_no_tiered_topics(controller.image)
    services, cluster = ServiceBuilder(environment, config, events, storage, controller, outbox, now_ms).build()
    _register_listeners(events, services, cluster)
    _start(environment, services, controller, cluster, storage, now_ms)
    dispatcher = Dispatcher(services)
    return Broker(
        services,
        dispatcher,
        _sasl_guard(environment, services, dispatcher, now_ms),
        _timed_parts(services),
        _controller_listener(environment, services, now_ms),
    )


def _controller_listener(environment: Environment, services: Services, now_ms: int) -> ControllerListener | None:
    if not services.config.roles.serves_brokers:
        return None
    from tailrace.broker.cluster.controller_listener import ControllerListener

    return ControllerListener(services, lambda parts, dispatcher: _sasl_guard(environment, parts, dispatcher, now_ms))


def _local_controller(
    environment: Environment,
    config: BrokerConfig,
    storage: Storage,
    controller_endpoints: tuple[Endpoint, ...],
    events: Events,
    now_ms: int,
) -> LocalController:
    metadata_log = MetadataLog(
        environment.files,
        config.metadata_log_dir,
        storage.identity,
        config.metadata_log,
        controller_endpoints=controller_endpoints,
        now_ms=now_ms,
    )

    def check(settings: Mapping[str, str], per_broker: bool) -> None:
        check_broker_change(config, controller.image, settings, per_broker)

    controller = LocalController(
        metadata_log,
        config.static,
        new_id=environment.new_id,
        next_int=environment.next_int,
        check_broker_config=check,
        listener=events.metadata_changed,
    )
    controller.begin(now_ms)
    return controller


def _register_listeners(events: Events, services: Services, cluster: ClusterParts | None) -> None:
    """Register the listeners of all events."""
    events.metadata_changed.listen(services.publisher.publish)
    events.partition_deleted.listen(services.moves.cancel)
    events.topics_deleted.listen(services.groups.topics_deleted, services.share_coordinator.topics_deleted)
    events.settings_changed.listen(services.cordoned.apply, services.config_updates.update_all)
    events.topic_settings_changed.listen(services.config_updates.update_topics)
    events.partition_failed.listen(services.failures.partition_failed)
    events.directory_failed.listen(services.failures.directory_failed)
    events.operation_failed.listen(services.replies.operation_failed)
    if isinstance(services.authorizer, StandardAuthorizer):
        events.acls_changed.listen(services.authorizer.change)
    remote = services.remote_logs
    if remote is not None:
        events.partition_hosted.listen(remote.hosted)
        events.partition_deleted.listen(remote.deleted)
        events.topics_deleted.listen(remote.topics_deleted)
        events.topic_settings_changed.listen(remote.configured)
    if services.telemetry is not None:
        events.client_metrics_changed.listen(services.telemetry.change_subscription)
    if cluster is not None:
        events.partition_hosted.listen(cluster.assignments.check, cluster.replication.hosted)
        events.isr_proposed.listen(cluster.replication.proposals.propose)


def _start(
    environment: Environment,
    services: Services,
    controller: LocalController | RemoteController,
    cluster: ClusterParts | None,
    storage: Storage,
    now_ms: int,
) -> None:
    """Host the partitions that the metadata names, and register the broker."""
    config, online = services.config, services.logs.online
    services.publisher.start(controller.image, now_ms)
    if services.telemetry is not None:
        services.telemetry.start(controller.image)
    if isinstance(controller, LocalController) and not config.roles.has_broker:
        controller.start_without_broker(now_ms)
    elif isinstance(controller, LocalController):
        controller.start_broker(
            config.endpoints(environment.bound, environment.default_host),
            directories=[storage.ids[directory.path] for directory in online],
            rack=config.rack,
            previous_epoch=min(report.previous_broker_epoch for report in services.load_reports),
            now_ms=now_ms,
        )
    services.moves.resume(now_ms)
    if isinstance(controller, RemoteController):
        assert cluster is not None
        assert environment.network is not None
        join_cluster(controller, environment.network, cluster, now_ms)
    elif cluster is not None:
        start_beside_controller(cluster, now_ms)
    _log.info(
        "broker opened",
        extra=fields(
            cluster_id=controller.image.cluster_id,
            node_id=config.node_id,
            log_dirs=tuple(directory.path for directory in storage.directories),
            topics=len(controller.image.topics),
            partitions=len(services.partitions),
        ),
    )


def _sasl_guard(environment: Environment, services: Services, dispatcher: Dispatcher, now_ms: int) -> SaslGuard | None:
    sasl = services.config.sasl
    if not sasl:
        return None
    validators = token_validators(sasl, environment.fetch_keys, environment.submit_fetch, services.purgatory, now_ms)
    return SaslGuard(services, dispatcher, sasl, environment.new_id, validators)


def _timed_parts(services: Services) -> TimedParts:
    """List the services that have deadlines, in the order in which `tick` calls them."""
    parts = TimedParts(services.internal_errors)
    parts.add("the purgatory", services.purgatory.expire, services.purgatory.next_deadline_ms)
    sessions = services.fetches.sessions
    parts.add("fetch sessions", sessions.tick, sessions.next_deadline_ms)
    for name, part in (
        ("the coordinators", services.coordinators),
        ("share groups", services.shares),
        ("config updates", services.config_updates),
        ("housekeeping", services.housekeeping),
        ("log cleaning", services.cleaning),
        ("remote logs", services.remote_logs),
        ("remote reads", services.remote_reads),
        ("calls of the remote store", services.store_calls),
        ("directory moves", services.moves),
        ("the controller", services.controller),
        ("long requests", services.long_requests),
        ("replication", services.replication),
    ):
        if part is not None:
            parts.add(name, part.tick, part.next_deadline_ms)
    return parts
