"""Migration: a node that is its own controller, or that is the controller of brokers, hands its metadata to new ones.

    <its directory>                                    <a new controller's directory>
        __cluster_metadata-0/                              bootstrap.checkpoint
            <end>-<epoch>.checkpoint                       __cluster_metadata-0/
            quorum-state                                       <end>-<epoch>.checkpoint, quorum-state
                                                           meta.properties

The metadata is handed over as one snapshot: the image without the old controller, and with the new voters. Its epoch is
newer than every existing log. So each node that has a log (this node and any other broker) drops it for the snapshot,
as Kafka's nodes do.

    prepare    write the controllers' files except meta.properties, without which Kafka does not start
    commit     write the new voters into the old directory: from here on it is a broker's directory
    finish     write meta.properties: from here on the new directories are controllers' directories

A standalone node becomes a broker. A node that is only a controller has no role afterwards. After a crash before the
commit the node is the controller as before. After a crash after the commit there is no controller until the migration
is run again. There are never two.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple
from uuid import UUID

from tailrace.log.disk import file_names
from tailrace.log.disk.checkpoints import DirectoryIdentity
from tailrace.log.disk.files import Files, join
from tailrace.metadata.controller.control_state import ControlState
from tailrace.metadata.decisions.brokers.broker_registration import plan_fence
from tailrace.metadata.image.delta import MetadataDelta
from tailrace.metadata.image.effective_config import EffectiveConfigs
from tailrace.metadata.image.features import RELEASES
from tailrace.metadata.image.image import MetadataImage
from tailrace.metadata.image.image_records import image_records
from tailrace.metadata.image.loader import QuorumFacts
from tailrace.metadata.image.registrations import Endpoint, fresh_id
from tailrace.metadata.quorum.quorum_state import QUORUM_STATE, QuorumState
from tailrace.metadata.storage.log_opening import open_metadata_log
from tailrace.metadata.storage.metadata_log import MetadataLog
from tailrace.metadata.storage.metadata_log_settings import MetadataLogSettings
from tailrace.metadata.storage.metadata_snapshot import (
    BOOTSTRAP_CHECKPOINT,
    SnapshotId,
    snapshot_batches,
    write_snapshot_file,
)
from tailrace.metadata.storage.snapshot_store import SnapshotStore
from tailrace.metadata.storage.storage_format import METADATA_FOLDER, is_formatted, local_voter, read_identity
from tailrace.model.ids import LeaderEpoch, Offset, TopicId
from tailrace.protocol.messages import FeatureLevelRecord
from tailrace.records.control_records import Voter

PREPARED: Final = "meta.properties.prepared"  # is renamed to meta.properties
_DYNAMIC_SINCE: Final = 21  # the metadata.version that allows kraft.version 1
_OURS: Final = {METADATA_FOLDER, BOOTSTRAP_CHECKPOINT, f"{BOOTSTRAP_CHECKPOINT}.part", PREPARED, f"{PREPARED}.tmp"}


class CannotMigrate(Exception):
    """The migration is not possible; the message has the reason."""


class NewController(NamedTuple):
    """A future controller: its address and its directory."""

    node_id: int
    host: str
    port: int
    path: str

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.node_id}@{host}:{self.port}"


@dataclass(slots=True)
class NodeMetadata:
    """The metadata in a node's directory, and its quorum."""

    path: str
    identity: DirectoryIdentity
    image: MetadataImage
    kraft_version: int
    voters: tuple[int, ...]
    end: SnapshotId  # the end of its log, and the newest epoch there
    was_clean: bool  # the node was stopped cleanly
    snapshot: SnapshotId | None = None

    @property
    def is_alone(self) -> bool:
        return self.voters == (self.identity.node_id,)

    @property
    def is_only_controller(self) -> bool:
        """Return True if the node has no broker: process.roles=controller."""
        return self.identity.node_id not in self.image.brokers


def read_node_metadata(files: Files, path: str, now_ms: int) -> NodeMetadata:
    """Read a node's metadata."""
    if not is_formatted(files, path) or not files.exists(join(path, METADATA_FOLDER)):
        raise CannotMigrate(f"{path} has no metadata log, so it is not the metadata directory of a standalone node")
    identity = read_identity(files, path)
    log = MetadataLog(files, path, identity, controller_endpoints=(), now_ms=now_ms)
    try:
        state = QuorumState.read(files, join(log.directory, QUORUM_STATE)) or QuorumState()
        latest, newest = log.log.epochs.latest, log.snapshots.latest
        epochs: list[LeaderEpoch] = [state.leader_epoch, log.image.epoch]
        epochs += [one.epoch for one in (latest, newest) if one is not None]
        voters = tuple(one.voter_id for one in log.quorum.voters) if log.quorum.kraft_version else state.voters
        end: Offset = log.log.log_end_offset
        return NodeMetadata(
            path,
            identity,
            log.image,
            log.quorum.kraft_version,
            voters or (identity.node_id,),
            SnapshotId(end, max(epochs)),
            files.exists(join(path, file_names.CLEAN_SHUTDOWN)),
            newest,
        )
    finally:
        log.close(now_ms)


@dataclass(slots=True)
class Migration:
    """The content and targets of a migration. `identities` and `voters` are in the order of the controllers."""

    node: NodeMetadata
    controllers: Sequence[NewController]
    kraft_version: int
    listener: str
    image: MetadataImage
    identities: list[DirectoryIdentity] = field(default_factory=list)

    @property
    def snapshot(self) -> SnapshotId:
        return SnapshotId(self.image.offset + 1, self.image.epoch)

    @property
    def voters(self) -> tuple[Voter, ...]:
        return tuple(
            local_voter(identity.node_id, identity.directory_id, (Endpoint(self.listener, one.host, one.port),))
            for identity, one in zip(self.identities, self.controllers, strict=True)
        )

    @property
    def other_brokers(self) -> list[int]:
        """Ids of brokers that also have to be configured with the new controllers."""
        return sorted(set(self.image.brokers) - {self.node.identity.node_id})


def plan_migration(
    node: NodeMetadata,
    controllers: Sequence[NewController],
    *,
    is_dynamic: bool | None = None,
    listener: str = "CONTROLLER",
    static_config: Mapping[str, str] | None = None,
    new_id: Callable[[], bytes],
    now_ms: int,
) -> Migration:
    """Plan a migration. `is_dynamic`: the quorum's voters are in its log; None keeps the present way."""
    image = node.image
    _check(node, controllers)
    kraft_version = node.kraft_version if is_dynamic is None else int(is_dynamic)
    if kraft_version and image.metadata_version < _DYNAMIC_SINCE:
        raise CannotMigrate(
            f"metadata.version is {RELEASES[image.metadata_version]}: a dynamic quorum needs at least "
            f"{RELEASES[_DYNAMIC_SINCE]}; use a static quorum"
        )
    cluster = node.identity.cluster_id
    identities = [
        DirectoryIdentity(cluster, one.node_id, str(TopicId(UUID(bytes=fresh_id(new_id))))) for one in controllers
    ]
    delta = MetadataDelta(_without(image, node.identity.node_id, static_config or {}, new_id))
    # The image is placed as if the new epoch had begun in the log, with one record.
    handed_over = delta.apply(offset=node.end.end_offset, epoch=node.end.epoch + 1, timestamp_ms=now_ms)
    return Migration(node, controllers, kraft_version, listener, handed_over, identities)


def _check(node: NodeMetadata, controllers: Sequence[NewController]) -> None:
    if not node.image.features:
        raise CannotMigrate(
            f"{node.path} is formatted, but its node was never started: there is no metadata to migrate"
        )
    if not node.is_alone:
        raise CannotMigrate(
            f"{node.path} belongs to a quorum of the voters {_listed(node.voters)}, not to a standalone node"
        )
    ids = [one.node_id for one in controllers]
    for one in ids:
        if one in node.image.brokers or one == node.identity.node_id:
            kind = "a broker" if one in node.image.brokers else "the old controller"
            raise CannotMigrate(f"node {one} is {kind}: choose another node id for the controller")
        if ids.count(one) > 1:
            raise CannotMigrate(f"two controllers have the node id {one}: choose different ones")
    places = [(one.host, one.port) for one in controllers]
    if len(set(places)) < len(places):
        raise CannotMigrate("two controllers have the same address")


def _without(
    image: MetadataImage, node_id: int, static_config: Mapping[str, str], new_id: Callable[[], bytes]
) -> MetadataImage:
    """Return the image without the old controller, and with its broker fenced."""
    broker = image.brokers.get(node_id)
    if broker is not None and not broker.fenced:
        # The node crashed. A controller would have noticed, and fenced the broker.
        state = ControlState(
            image=image,
            configs=EffectiveConfigs(dict(static_config), node_id),
            new_id=new_id,
            next_int=lambda below: 0,
        )
        delta = MetadataDelta(image)
        delta.replay_all(plan_fence(state, node_id).records)
        image = delta.apply(offset=image.offset, epoch=image.epoch, timestamp_ms=image.timestamp_ms)
    return replace(image, controllers={})

    # Execution


def check_targets(files: Files, controllers: Sequence[NewController]) -> None:
    """Raise CannotMigrate unless the directories are empty or belong to an unfinished run of this migration."""
    for one in controllers:
        if not files.exists(one.path):
            continue
        if is_formatted(files, one.path):
            identity = read_identity(files, one.path)
            raise CannotMigrate(f"{one.path} belongs to node {identity.node_id} of cluster {identity.cluster_id}")
        foreign = {entry.name for entry in files.entries(one.path)} - _OURS
        if foreign:
            raise CannotMigrate(f"{one.path} is not empty: it contains {min(foreign)}")


def prepare(files: Files, migration: Migration, now_ms: int) -> None:
    """Write the controllers' directories, except for meta.properties."""
    for controller, identity in zip(migration.controllers, migration.identities, strict=True):
        folder = join(controller.path, METADATA_FOLDER)
        if files.exists(controller.path):
            files.remove(join(controller.path, PREPARED))
            if files.exists(folder):
                files.remove_directory(folder)
        _make_directory(files, folder)
        levels = [FeatureLevelRecord(name=name, feature_level=level) for name, level in _levels(migration.image)]
        bootstrap = snapshot_batches(
            levels,
            migration.image.record_versions,
            quorum=QuorumFacts(),
            epoch=0,
            last_contained_timestamp=0,
            now_ms=now_ms,
        )
        write_snapshot_file(files, join(controller.path, BOOTSTRAP_CHECKPOINT), bootstrap)
        _write_quorum_state(files, folder, migration)
        _write_snapshot(files, folder, migration, now_ms)
        identity.write(files, join(controller.path, PREPARED))


def _make_directory(files: Files, path: str) -> None:
    """Create a directory and its parents, and sync them."""
    above = path.rpartition("/")[0]
    if above and not files.exists(above):
        _make_directory(files, above)
    files.make_directory(path)
    files.sync_directory(above or "/")


def commit(files: Files, migration: Migration, now_ms: int) -> None:
    """Write snapshot and quorum-state of the old directory. The one written second names the voters, and commits."""
    folder = join(migration.node.path, METADATA_FOLDER)
    settings = MetadataLogSettings()
    snapshots = SnapshotStore(files, folder, settings, now_ms)
    log = open_metadata_log(files, folder, snapshots, settings, now_ms)
    if migration.kraft_version:
        _write_quorum_state(files, folder, migration)
        _write_snapshot(files, folder, migration, now_ms)
    else:
        _write_snapshot(files, folder, migration, now_ms)
        _write_quorum_state(files, folder, migration)
    # The next start would do this as well.
    log.truncate_fully(migration.snapshot.end_offset, now_ms)
    snapshots.adopt(migration.snapshot)
    log.flush(now_ms)
    log.run_due(now_ms + log.config.file_delete_delay_ms)
    log.close()


def is_committed(node: NodeMetadata, controllers: Sequence[NewController]) -> bool:
    """Return True if the metadata was handed over to exactly these controllers."""
    return sorted(node.voters) == sorted(one.node_id for one in controllers)


def finish(files: Files, node: NodeMetadata, controllers: Sequence[NewController]) -> list[NewController]:
    """Make the prepared directories the controllers'. Return the controllers whose directory was not yet finished."""
    finished = []
    for one in controllers:
        target = join(one.path, file_names.META_PROPERTIES)
        prepared = join(one.path, PREPARED)
        if not files.exists(target):
            if not files.exists(prepared):
                raise CannotMigrate(
                    f"the metadata of {node.path} was handed over to controller {one.node_id}, but {one.path} is "
                    "not its directory"
                )
            _check_identity(DirectoryIdentity.read(files, prepared), node, one)
            files.replace(prepared, target)
            files.sync_directory(one.path)
            finished.append(one)
        _check_identity(read_identity(files, one.path), node, one)
    return finished


def _check_identity(found: DirectoryIdentity, node: NodeMetadata, controller: NewController) -> None:
    if (found.cluster_id, found.node_id) != (node.identity.cluster_id, controller.node_id):
        raise CannotMigrate(f"{controller.path} belongs to node {found.node_id} of cluster {found.cluster_id}")


def _write_snapshot(files: Files, folder: str, migration: Migration, now_ms: int) -> None:
    voters = migration.voters if migration.kraft_version else ()
    batches = snapshot_batches(
        image_records(migration.image),
        migration.image.record_versions,
        quorum=QuorumFacts(migration.kraft_version, voters),
        epoch=migration.image.epoch,
        last_contained_timestamp=migration.image.timestamp_ms,
        now_ms=now_ms,
    )
    write_snapshot_file(files, join(folder, migration.snapshot.file_name), batches)


def _write_quorum_state(files: Files, folder: str, migration: Migration) -> None:
    state = QuorumState(-1, migration.image.epoch, tuple(one.node_id for one in migration.controllers))
    state.write(files, join(folder, QUORUM_STATE), migration.kraft_version)


def _levels(image: MetadataImage) -> list[tuple[str, int]]:
    return [(name, level) for name, level in image.features.items() if level]


def _listed(ids: Sequence[int]) -> str:
    return ", ".join(map(str, ids))
