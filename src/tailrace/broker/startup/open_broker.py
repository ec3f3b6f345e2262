"""open_broker: a broker on its log directories, new or existing.

1  directories are formatted if they are new, and locked
2  the metadata log is read, and this node takes the lead under a new epoch, or follows the quorum that has it
3  partition logs are opened, and recovered where the last stop was unclean
4  the parts of the broker are built, each with what it needs, and the listeners of events are registered
5  the broker registers itself; partitions are hosted as the metadata says
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence

from tailrace.broker.broker import Broker
from tailrace.broker.cluster.quorum_startup import (
    ClusterParts,
    Network,
    catch_up,
    join_cluster,
    open_remote_controller,
)
from tailrace.broker.config.broker_changes import check_broker_change
from tailrace.broker.config.broker_config import BrokerConfig
from tailrace.broker.dispatcher import Dispatcher
from tailrace.broker.events import Events
from tailrace.broker.handling.timed_parts import TimedParts
from tailrace.broker.security.authorizer import Authorizer
from tailrace.broker.security.guard import Guard
from tailrace.broker.security.standard_authorizer import StandardAuthorizer
from tailrace.broker.security.token_validators import FetchKeys, token_validators
from tailrace.broker.services import Services
from tailrace.broker.startup.building import ServiceBuilder
from tailrace.broker.startup.givens import Givens
from tailrace.broker.storage.cleaning import Work, run_at_once
from tailrace.broker.storage.disk_failures import LogDirectoriesFailed
from tailrace.broker.storage.storage_startup import Storage, prepare_storage
from tailrace.log.directories.log_directories import DuplicateLog
from tailrace.log.directories.log_directory import DirectoryInUse
from tailrace.log.disk.checkpoints import CorruptCheckpoint
from tailrace.log.disk.files import Files
from tailrace.log.segments.indexes.index_file import CorruptIndex
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
from tailrace.waiting.outbox import Outbox

# What a person has to look at before the broker can start; each says in a sentence what is wrong.
REFUSALS = (
    InvalidConfig,
    KafkaError,  # the controller does not let the broker in: its metadata has what we do not know
    LogDirectoriesFailed,
    DirectoryInUse,
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
    submit: Callable[[Work], None] | None = None,
    is_turn_over: Callable[[], bool] = lambda: False,
    cluster_id: str | None = None,
    work_ns: Callable[[], int] = lambda: 0,
    network: Network | None = None,
    first_records: Sequence[Message] = (),
    fetch_keys: FetchKeys | None = None,
    submit_fetch: Callable[[Work], None] | None = None,
    has_telemetry: bool = False,
    log_flushes: Histogram | None = None,
    authorizer: Authorizer | None = None,
) -> Broker:
    """Open a broker; `givens.py` explains the parameters. Without `submit`, chores run on the spot, at `now_ms`."""
    chores = submit or run_at_once(lambda: now_ms)
    givens = Givens(
        files=files,
        new_id=new_id,
        next_int=next_int,
        submit=chores,
        has_workers=submit is not None,
        submit_fetch=submit_fetch or chores,
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
    return _open(givens, config, now_ms)


def _open(givens: Givens, config: BrokerConfig, now_ms: int) -> Broker:
    is_alone = not config.roles.is_broker_only
    controller_endpoints = config.controller_endpoints(givens.bound, givens.default_host) if is_alone else None
    storage = prepare_storage(
        givens.files,
        config,
        cluster_id=givens.cluster_id,
        controller_endpoints=controller_endpoints,
        new_id=givens.new_id,
        first_records=givens.first_records,
        now_ms=now_ms,
    )
    events, outbox = Events(), Outbox()
    controller: LocalController | RemoteController
    if controller_endpoints is not None:
        controller = _local_controller(givens, config, storage, controller_endpoints, events, now_ms)
    else:
        assert givens.network is not None, "a broker whose controllers are other nodes needs a network"
        controller = open_remote_controller(
            givens.files,
            config,
            storage.identity,
            outbox=outbox,
            endpoints=config.endpoints(givens.bound, givens.default_host),
            directories=storage.ids,
            new_id=givens.new_id,
            network=givens.network,
            listener=events.metadata_changed,
            now_ms=now_ms,
        )
        now_ms = catch_up(controller, givens.network, now_ms)
    services, cluster = ServiceBuilder(givens, config, events, storage, controller, outbox, now_ms).build()
    _listen(events, services, cluster)
    _start(givens, services, controller, cluster, storage, now_ms)
    dispatcher = Dispatcher(services)
    return Broker(services, dispatcher, _guard(givens, services, dispatcher, now_ms), _timed_parts(services))


def _local_controller(
    givens: Givens,
    config: BrokerConfig,
    storage: Storage,
    controller_endpoints: tuple[Endpoint, ...],
    events: Events,
    now_ms: int,
) -> LocalController:
    metadata_log = MetadataLog(
        givens.files,
        config.metadata_log_dir,
        storage.identity,
        config.metadata_log,
        controller_endpoints=controller_endpoints,
        now_ms=now_ms,
    )
    controller = LocalController(
        metadata_log,
        config.static,
        new_id=givens.new_id,
        next_int=givens.next_int,
        check_broker_config=lambda settings, per_broker: check_broker_change(
            config, controller.image, settings, per_broker
        ),
        listener=events.metadata_changed,
    )
    controller.begin(now_ms)
    return controller


def _listen(events: Events, services: Services, cluster: ClusterParts | None) -> None:
    """Register the listeners of all events."""
    events.metadata_changed.listen(services.publisher.publish)
    events.partition_deleted.listen(services.moves.cancel)
    events.topics_deleted.listen(services.groups.topics_deleted, services.share_states.topics_deleted)
    events.settings_changed.listen(services.cordoned.apply)
    events.partition_failed.listen(services.failures.partition_failed)
    events.directory_failed.listen(services.failures.directory_failed)
    events.operation_failed.listen(services.replies.operation_failed)
    if isinstance(services.authorizer, StandardAuthorizer):
        events.acls_changed.listen(services.authorizer.change)
    if services.telemetry is not None:
        events.client_metrics_changed.listen(services.telemetry.change_subscription)
    if cluster is not None:
        events.partition_hosted.listen(cluster.assignments.check, cluster.replication.hosted)
        events.isr_proposed.listen(cluster.replication.proposals.propose)


def _start(
    givens: Givens,
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
    if isinstance(controller, LocalController):
        controller.start_broker(
            config.endpoints(givens.bound, givens.default_host),
            directories=[storage.ids[directory.path] for directory in online],
            rack=config.rack,
            previous_epoch=min(report.previous_broker_epoch for report in services.load_reports),
            now_ms=now_ms,
        )
    services.moves.resume(now_ms)
    if isinstance(controller, RemoteController):
        assert cluster is not None
        assert givens.network is not None
        join_cluster(controller, givens.network, cluster, now_ms)
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


def _guard(givens: Givens, services: Services, dispatcher: Dispatcher, now_ms: int) -> Guard | None:
    sasl = services.config.sasl
    if not sasl:
        return None
    validators = token_validators(sasl, givens.fetch_keys, givens.submit_fetch, services.purgatory, now_ms)
    return Guard(services, dispatcher, sasl, givens.new_id, validators)


def _timed_parts(services: Services) -> TimedParts:
    """List the parts that do something when their time has come, in the order in which they do it."""
    parts = TimedParts(services.internal_errors)
    parts.add("the purgatory", services.purgatory.expire, services.purgatory.next_deadline_ms)
    sessions = services.fetches.sessions
    parts.add("fetch sessions", sessions.tick, sessions.next_deadline_ms)
    for name, part in (
        ("the coordinators", services.coordinators),
        ("share groups", services.shares),
        ("housekeeping", services.housekeeping),
        ("log cleaning", services.cleaning),
        ("directory moves", services.moves),
        ("the controller", services.controller),
        ("long requests", services.long_requests),
        ("replication", services.replication),
    ):
        if part is not None:
            parts.add(name, part.tick, part.next_deadline_ms)
    return parts
