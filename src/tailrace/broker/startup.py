"""open_broker: a broker on its log directories, from nothing or from what was there.

1  directories are formatted if they are new, and locked
2  the metadata log is read, and this node takes the lead under a new epoch, or follows the quorum that has it
3  partition logs are opened, and recovered where the last stop was unclean
4  the broker registers itself; partitions are hosted as the metadata says
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from tailrace.broker.broker import Broker
from tailrace.broker.cluster.quorum_startup import Network, catch_up, join_cluster, open_remote_controller
from tailrace.broker.config.authorizer_config import authorizer_of
from tailrace.broker.config.broker_changes import check_broker_change
from tailrace.broker.config.broker_config import BrokerConfig
from tailrace.broker.coordination.coordinators import Coordinators
from tailrace.broker.coordination.groups import Groups
from tailrace.broker.coordination.transactions import Transactions
from tailrace.broker.security.fetch_rights import FetchRights
from tailrace.broker.security.guard import Guard
from tailrace.broker.security.token_validators import FetchKeys, token_validators
from tailrace.broker.shares.share_state import ShareStates
from tailrace.broker.shares.shares import Shares
from tailrace.broker.storage.cleaning import LogCleaning, Work, run_at_once
from tailrace.broker.storage.cordoned_directories import CordonedDirectories
from tailrace.broker.storage.directory_moves import DirectoryMoves
from tailrace.broker.storage.disk_failures import DiskFailures, LogDirectoriesFailed
from tailrace.broker.storage.housekeeping import Housekeeping
from tailrace.broker.storage.image_publisher import ImagePublisher
from tailrace.broker.storage.load_log import progress_of, tell_loaded
from tailrace.broker.storage.load_proposals import LoadProposals
from tailrace.broker.throttling import Throttling, windows_of
from tailrace.fetch.fetches import Fetches
from tailrace.fetch.preferred_replica import selector_of
from tailrace.fetch.read import PartitionReader
from tailrace.fetch.sessions import FetchSessions
from tailrace.log.compaction.cleaner import CleanerSettings
from tailrace.log.directories.log_directories import DuplicateLog, LogDirectories
from tailrace.log.directories.log_directory import DirectoryInUse, LogDirectory
from tailrace.log.disk.checkpoints import CorruptCheckpoint
from tailrace.log.disk.files import Files
from tailrace.log.indexes.index_file import CorruptIndex
from tailrace.metadata.controller.local_controller import LocalController
from tailrace.metadata.controller.remote_controller import RemoteController
from tailrace.metadata.image.image import MetadataImage
from tailrace.metadata.image.registrations import InconsistentMetadata
from tailrace.metadata.storage.metadata_log import MetadataLog, NotTheOnlyVoter
from tailrace.metadata.storage.metadata_snapshot import UnreadableSnapshot
from tailrace.metadata.storage.storage_format import WrongDirectory, is_formatted, prepare_directories, read_identity
from tailrace.model.errors import KafkaError
from tailrace.model.ids import BrokerId, TopicId, TopicPartition
from tailrace.model.log_fields import fields
from tailrace.model.shortage import is_shortage
from tailrace.model.topic_config import InvalidConfig
from tailrace.protocol.errors import ProtocolError
from tailrace.protocol.message import Message
from tailrace.quota.replication_quota import ReplicationQuota
from tailrace.records.batch import CorruptBatch
from tailrace.replication.fetching.throttles import LeaderThrottle
from tailrace.replication.hosted_partitions import HostedPartitions
from tailrace.replication.leader import ReplicaSettings
from tailrace.waiting.outbox import Outbox
from tailrace.waiting.purgatory import Purgatory

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
) -> Broker:
    """`new_id` gives 16 random bytes, `next_int(n)` a number below n, `bound` the ports of listeners on port 0.

    `work_ns` is the clock by which request_percentage is measured; one that stands still lets requests take no time.
    `network` is needed where the controllers are other nodes: nothing is known before they are heard.
    `first_records` are what the metadata log of a new cluster begins with.
    `is_turn_over` says that a request which can pause should do so; by default none does.
    `fetch_keys` reads the keys of identity providers, which OAUTHBEARER needs; `submit_fetch` runs it on a thread.
    """
    node_id = config.node_id
    selector = selector_of(config.text("replica.selector.class"))
    paths = usable_paths(files, config)
    is_alone = not config.roles.is_broker_only
    controller_endpoints = config.controller_endpoints(bound, default_host) if is_alone else None
    identities = prepare_directories(
        files,
        paths,
        node_id=node_id,
        cluster_id=cluster_id,
        controller_endpoints=controller_endpoints,
        new_id=new_id,
        metadata_path=config.metadata_log_dir,
        more=first_records,
        now_ms=now_ms,
    )
    directories = [LogDirectory(files, path, new_id=lambda: new_id().hex()) for path in paths]
    ids = {path: TopicId.parse(one.directory_id).value.bytes for path, one in zip(paths, identities, strict=True)}
    identity = identities[paths.index(config.metadata_log_dir)]
    endpoints = config.endpoints(bound, default_host)
    outbox = Outbox()
    controller: LocalController | RemoteController
    if controller_endpoints is not None:
        metadata_log = MetadataLog(
            files,
            config.metadata_log_dir,
            identity,
            config.metadata_log,
            controller_endpoints=controller_endpoints,
            now_ms=now_ms,
        )
        controller = LocalController(
            metadata_log,
            config.static,
            new_id=new_id,
            next_int=next_int,
            check_broker_config=lambda settings, per_broker: check_broker_change(
                config, controller.image, settings, per_broker
            ),
        )
        controller.begin(now_ms)
    else:
        assert network is not None, "there is nobody to send for a broker whose controllers are other nodes"
        controller = open_remote_controller(
            files,
            config,
            identity,
            outbox=outbox,
            endpoints=endpoints,
            directories=ids,
            new_id=new_id,
            now_ms=now_ms,
        )
        now_ms = catch_up(controller, network, now_ms)

    purgatory = Purgatory()
    partitions = HostedPartitions(image=lambda: controller.image)
    logs = LogDirectories(directories)
    logs.unusable = tuple(path for path in config.log_dirs if path not in paths)
    for directory in directories:
        directory.id = ids[directory.path]
    cordoned = CordonedDirectories(config, logs, controller)
    cordoned.apply(controller.image)
    failures = DiskFailures(logs, partitions, purgatory, controller, ids=ids, metadata_path=config.metadata_log_dir)
    partitions.on_failure = failures.partition_failed
    logs.on_failure = failures.directory_failed
    replicas = ReplicaSettings(
        broker_id=node_id,
        image=lambda: controller.image,
        broker_epoch=lambda: controller.broker_epoch,
        replica_lag_time_max_ms=config.integer("replica.lag.time.max.ms"),
    )
    throttling = Throttling(config, work_ns)
    coordinators = Coordinators()
    groups = Groups(config, lambda: controller.image, partitions, purgatory, coordinators, new_id)
    transactions = Transactions(
        config,
        lambda: controller.image,
        partitions,
        purgatory,
        coordinators,
        controller.allocate_producer_ids,
        now_ms,
    )
    share_states = ShareStates(config, lambda: controller.image, partitions, purgatory, coordinators, now_ms)
    publisher = ImagePublisher(config, logs, partitions, purgatory, replicas, throttling, coordinators)
    publisher.now_ms = now_ms
    publisher.on_settings = cordoned.apply
    authorizer = authorizer_of(config.static)
    if authorizer is not None:
        publisher.on_acls = authorizer.change

    image = controller.image
    reports = []
    for directory in directories:
        try:
            report = directory.load(lambda topic: config.topic_config(image, topic), now_ms, progress_of(directory))
        except OSError as error:
            if is_shortage(error):
                raise
            failures.directory_failed(directory, error)
            continue
        tell_loaded(directory, report)
        reports.append(report)
        if submit is not None:
            directory.flush_by(submit, partial(failures.directory_failed, directory))
    if config.metadata_log_dir not in [directory.path for directory in logs.online]:
        raise LogDirectoriesFailed(f"{config.metadata_log_dir}, which has the metadata log, cannot be used")
    logs.settle_moves(partial(_place_of, image, node_id), now_ms)
    logs.check_unique()
    publisher.start(image)
    controller.listener = publisher.publish
    if isinstance(controller, LocalController):
        controller.start_broker(
            endpoints,
            directories=[ids[directory.path] for directory in logs.online],
            rack=config.rack,
            previous_epoch=min(report.previous_broker_epoch for report in reports),
            now_ms=now_ms,
        )

    replication_quota = ReplicationQuota(
        windows_of(config, "replication.quota.window"),
        lambda: config.current_integer("leader.replication.throttled.rate", controller.image),
    )
    throttle = LeaderThrottle(partitions, node_id, replication_quota, lambda: publisher.now_ms)
    reader = PartitionReader(partitions, select_replica=selector, quota=throttle)
    sessions = FetchSessions(
        purgatory,
        lambda: 1 + next_int(2**31 - 1),
        slots=config.integer("max.incremental.fetch.session.cache.slots"),
    )
    submit = submit or run_at_once(lambda: publisher.now_ms)
    cleaning = None
    if config.flag("log.cleaner.enable"):
        cleaning = LogCleaning(
            files,
            logs,
            submit,
            CleanerSettings(
                dedupe_buffer_bytes=config.integer("log.cleaner.dedupe.buffer.size"),
                load_factor=config.number("log.cleaner.io.buffer.load.factor"),
                io_buffer_bytes=config.integer("log.cleaner.io.buffer.size"),
                salt=new_id(),
            ),
            backoff_ms=config.integer("log.cleaner.backoff.ms"),
            now_ms=now_ms,
        )
    moves = DirectoryMoves(
        files,
        logs,
        partitions,
        purgatory,
        controller,
        submit,
        ReplicationQuota(
            windows_of(config, "alter.log.dirs.replication.quota.window"),
            lambda: config.current_integer("replica.alter.log.dirs.io.max.bytes.per.second", controller.image),
        ),
        cleaning,
    )
    publisher.on_delete = moves.cancel
    moves.resume(now_ms)
    broker = Broker(
        config,
        controller,
        logs,
        partitions,
        publisher,
        purgatory,
        Fetches(
            reader,
            sessions,
            purgatory,
            lambda: controller.image,
            authorizer=None if authorizer is None else FetchRights(authorizer),
            max_bytes=config.integer("fetch.max.bytes"),
        ),
        Housekeeping(
            logs,
            purgatory,
            failures,
            retention_interval_ms=config.integer("log.retention.check.interval.ms"),
            flush_interval_ms=config.integer("log.flush.scheduler.interval.ms"),
            checkpoint_interval_ms=config.integer("log.flush.offset.checkpoint.interval.ms"),
            high_watermark_interval_ms=config.integer("replica.high.watermark.checkpoint.interval.ms"),
            take_loads=LoadProposals(files, partitions, purgatory).take,
            now_ms=now_ms,
        ),
        cleaning,
        authorizer,
        moves=moves,
        throttling=throttling,
        coordinators=coordinators,
        groups=groups,
        transactions=transactions,
        share_states=share_states,
        shares=Shares(config, lambda: controller.image, partitions, purgatory, share_states, outbox),
        outbox=outbox,
        submit=submit,
        is_turn_over=is_turn_over,
    )
    broker.load_reports = reports
    if config.sasl:
        validators = token_validators(config.sasl, fetch_keys, submit_fetch or submit, purgatory, now_ms)
        broker.guard = Guard(broker, config.sasl, new_id, validators)
    if isinstance(controller, RemoteController):
        assert network is not None
        join_cluster(broker, controller, network, replicas, now_ms)
    _log.info(
        "broker opened",
        extra=fields(
            cluster_id=image.cluster_id,
            node_id=node_id,
            log_dirs=paths,
            topics=len(controller.image.topics),
            partitions=len(partitions),
        ),
    )
    return broker


def usable_paths(files: Files, config: BrokerConfig) -> tuple[str, ...]:
    """The log directories that can be read at all; LogDirectoriesFailed without that of the metadata log."""
    usable = []
    for path in config.log_dirs:
        try:
            files.make_directory(path)
            files.entries(path)
            if is_formatted(files, path):
                read_identity(files, path)
        except OSError as error:
            if is_shortage(error):
                raise
            if path == config.metadata_log_dir:
                raise LogDirectoriesFailed(f"{path}, which has the metadata log, cannot be used: {error}") from error
            _log.error("log directory %s is offline: %s", path, error)
            continue
        usable.append(path)
    return tuple(usable)


def _place_of(image: MetadataImage, node_id: BrokerId, partition: TopicPartition) -> bytes | None:
    """The id of the directory where the metadata says that this broker has a partition."""
    state = image.partition(partition)
    return state.directory_of(node_id) if state is not None and node_id in state.replicas else None
