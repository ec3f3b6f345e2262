"""The log directories of a broker at its start.

prepare_storage    format new directories, and lock all of them
load_logs          open the logs of the partitions, and recover them after an unclean stop
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from tailrace.broker.config.broker_config import BrokerConfig
from tailrace.broker.storage.disk_failures import DiskFailures, LogDirectoriesFailed
from tailrace.broker.storage.load_progress import log_loaded, progress_of
from tailrace.log.directories.log_directories import LogDirectories
from tailrace.log.directories.log_directory import LoadReport, LogDirectory
from tailrace.log.directories.shards_file import check_shards
from tailrace.log.disk.checkpoints import DirectoryIdentity
from tailrace.log.disk.files import Files
from tailrace.log.segments.open_segments import OpenSegments
from tailrace.metadata.image.image import MetadataImage
from tailrace.metadata.image.registrations import Endpoint
from tailrace.metadata.storage.storage_format import is_formatted, prepare_directories, read_identity
from tailrace.model.ids import BrokerId, TopicId, TopicPartition
from tailrace.model.shortage import is_shortage
from tailrace.protocol.message import Message

_log = logging.getLogger(__name__)


class Storage(NamedTuple):
    """The log directories, locked but not loaded yet."""

    directories: Sequence[LogDirectory]
    ids: Mapping[str, bytes]  # the ids of the directories, by path
    unusable: Sequence[str]  # paths that cannot be read
    identity: DirectoryIdentity  # of the directory with the metadata log


def prepare_storage(
    files: Files,
    config: BrokerConfig,
    *,
    cluster_id: str | None,
    controller_endpoints: tuple[Endpoint, ...] | None,
    new_id: Callable[[], bytes],
    open_segments_max: int,
    first_records: Sequence[Message],
    now_ms: int,
) -> Storage:
    """Format new directories, and lock all of them. `first_records` begin the metadata log of a new cluster."""
    for path in config.log_dirs:
        check_shards(files, path)
    paths = usable_paths(files, config)
    identities = prepare_directories(
        files,
        paths,
        node_id=config.node_id,
        cluster_id=cluster_id,
        controller_endpoints=controller_endpoints,
        new_id=new_id,
        metadata_path=config.metadata_log_dir,
        more=first_records,
        now_ms=now_ms,
    )
    ids = {path: TopicId.parse(one.directory_id).value.bytes for path, one in zip(paths, identities, strict=True)}
    open_segments = OpenSegments(open_segments_max)
    return Storage(
        [
            LogDirectory(
                files,
                path,
                new_id=lambda: new_id().hex(),
                directory_id=ids[path],
                open_segments=open_segments,
            )
            for path in paths
        ],
        ids,
        [path for path in config.log_dirs if path not in paths],
        identities[paths.index(config.metadata_log_dir)],
    )


def load_logs(
    logs: LogDirectories, config: BrokerConfig, image: MetadataImage, failures: DiskFailures, now_ms: int
) -> list[LoadReport]:
    """Open the logs in all directories. Raise LogDirectoriesFailed if the metadata log's directory has failed."""
    reports = []
    for directory in logs.directories:
        try:
            report = directory.load(lambda topic: config.topic_config(image, topic), now_ms, progress_of(directory))
        except OSError as error:
            if is_shortage(error):
                raise
            failures.directory_failed(directory, error)
            continue
        log_loaded(directory, report)
        reports.append(report)
    if config.metadata_log_dir not in [directory.path for directory in logs.online]:
        raise LogDirectoriesFailed(f"{config.metadata_log_dir}, which has the metadata log, cannot be used")
    logs.finish_interrupted_moves(partial(_place_of, image, config.node_id), now_ms)
    logs.check_unique()
    return reports


def usable_paths(files: Files, config: BrokerConfig) -> tuple[str, ...]:
    """Return the readable log directories. Raise LogDirectoriesFailed if the metadata log's is not among them."""
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
                reason = error.strerror or str(error)
                raise LogDirectoriesFailed(f"{path}, which has the metadata log, cannot be used: {reason}") from error
            _log.error("log directory %s is offline: %s", path, error)
            continue
        usable.append(path)
    return tuple(usable)


def _place_of(image: MetadataImage, node_id: BrokerId, partition: TopicPartition) -> bytes | None:
    """Return the id of the directory that the metadata assigns to this broker's replica of a partition."""
    state = image.partition(partition)
    return state.directory_of(node_id) if state is not None and node_id in state.replicas else None
