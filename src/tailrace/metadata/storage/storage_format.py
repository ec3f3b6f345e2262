"""Formatting of a directory: identity, first snapshot, feature levels, as `kafka-storage format --standalone` does.

`meta.properties` is written last. So a directory that has it is complete, and any other is formatted again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from uuid import UUID

from tailrace.log.disk import file_names
from tailrace.log.disk.checkpoints import DirectoryIdentity
from tailrace.log.disk.files import Files, join
from tailrace.metadata.image.features import BOOTSTRAP_LEVELS, METADATA_VERSION, record_versions
from tailrace.metadata.image.loader import QuorumFacts
from tailrace.metadata.image.registrations import Endpoint, fresh_id
from tailrace.metadata.storage.metadata_snapshot import (
    BOOTSTRAP_CHECKPOINT,
    FORMATTED,
    read_snapshot,
    snapshot_batches,
    write_snapshot_file,
)
from tailrace.model.ids import TopicId
from tailrace.protocol import messages
from tailrace.protocol.message import Message
from tailrace.records.control_records import Endpoint as VoterEndpoint
from tailrace.records.control_records import Voter

METADATA_FOLDER = f"{file_names.CLUSTER_METADATA_TOPIC}-0"
METADATA_TOPIC_ID = TopicId(UUID(int=1))


def is_formatted(files: Files, path: str) -> bool:
    return files.exists(join(path, file_names.META_PROPERTIES))


def read_identity(files: Files, path: str) -> DirectoryIdentity:
    """Read the identity of a directory. Raise CorruptCheckpoint if that is not possible."""
    return DirectoryIdentity.read(files, join(path, file_names.META_PROPERTIES))


def local_voter(node_id: int, directory_id: str, endpoints: tuple[Endpoint, ...]) -> Voter:
    """Return this node as a voter of its quorum."""
    return Voter(
        node_id,
        TopicId.parse(directory_id).value,
        tuple(VoterEndpoint(one.listener, one.host, one.port) for one in endpoints),
        0,
        1,
    )


def format_directory(
    files: Files,
    path: str,
    identity: DirectoryIdentity,
    *,
    controller_endpoints: tuple[Endpoint, ...] | None,
    levels: Mapping[str, int] = BOOTSTRAP_LEVELS,
    more: Sequence[Message] = (),
    now_ms: int,
) -> None:
    """Format an empty directory. With endpoints it will hold the metadata log, and the node is its voter.
    `more` are records that the log begins with, after the feature levels."""
    files.make_directory(path)
    records: list[Message] = [
        messages.FeatureLevelRecord(name=name, feature_level=level) for name, level in levels.items() if level
    ]
    records += more
    _write(files, join(path, BOOTSTRAP_CHECKPOINT), records, QuorumFacts(), levels, 0, now_ms)
    if controller_endpoints is not None:
        folder = join(path, METADATA_FOLDER)
        files.make_directory(folder)
        files.sync_directory(path)
        voter = local_voter(identity.node_id, identity.directory_id, controller_endpoints)
        _write(files, join(folder, FORMATTED.file_name), [], QuorumFacts(1, (voter,)), levels, now_ms, now_ms)
    identity.write(files, join(path, file_names.META_PROPERTIES))


class WrongDirectory(Exception):
    """A log directory that belongs to another node or cluster."""


def prepare_directories(
    files: Files,
    paths: Sequence[str],
    *,
    node_id: int,
    cluster_id: str | None,
    controller_endpoints: tuple[Endpoint, ...] | None,
    new_id: Callable[[], bytes],
    metadata_path: str | None = None,
    levels: Mapping[str, int] = BOOTSTRAP_LEVELS,
    more: Sequence[Message] = (),
    now_ms: int,
) -> list[DirectoryIdentity]:
    """Return the identities of a node's log directories; format new ones.

    All must belong to the same node and cluster. The metadata log is in `metadata_path`, by default the first one. With
    endpoints the node is its voter.
    """
    known = {path: read_identity(files, path) for path in paths if is_formatted(files, path)}
    clusters = {identity.cluster_id for identity in known.values()} | ({cluster_id} if cluster_id else set())
    if len(clusters) > 1:
        raise WrongDirectory(f"the log directories belong to different clusters: {', '.join(sorted(clusters))}")
    cluster = clusters.pop() if clusters else _text(fresh_id(new_id))
    for path, identity in known.items():
        if identity.node_id != node_id:
            raise WrongDirectory(f"{path} belongs to node {identity.node_id}, not to {node_id}")
        if not identity.directory_id:
            # It was formatted by a version in which directories had no ids.
            known[path] = replace(identity, directory_id=_text(fresh_id(new_id)))
            known[path].write(files, join(path, file_names.META_PROPERTIES))
    found = []
    for path in paths:
        if path not in known:
            known[path] = DirectoryIdentity(cluster, node_id, _text(fresh_id(new_id)))
            endpoints = controller_endpoints if path == (metadata_path or paths[0]) else None
            format_directory(
                files, path, known[path], controller_endpoints=endpoints, levels=levels, more=more, now_ms=now_ms
            )
        found.append(known[path])
    return found


def _text(raw: bytes) -> str:
    return str(TopicId(UUID(bytes=raw)))


def _write(
    files: Files,
    path: str,
    records: Sequence[Message],
    quorum: QuorumFacts,
    levels: Mapping[str, int],
    last_contained_timestamp: int,
    now_ms: int,
) -> None:
    batches = snapshot_batches(
        records,
        record_versions(levels[METADATA_VERSION]),
        quorum=quorum,
        epoch=0,
        last_contained_timestamp=last_contained_timestamp,
        now_ms=now_ms,
    )
    write_snapshot_file(files, path, batches)


def bootstrap_records(files: Files, path: str) -> list[Message]:
    """Return the first records of a metadata log, from the format command or, without it, the default levels."""
    checkpoint = join(path, BOOTSTRAP_CHECKPOINT)
    if files.exists(checkpoint):
        return read_snapshot(files, checkpoint).records
    return [messages.FeatureLevelRecord(name=name, feature_level=level) for name, level in BOOTSTRAP_LEVELS.items()]
