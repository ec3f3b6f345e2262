"""Topic configs from the metadata log of a data directory, read without a broker."""

from __future__ import annotations

import os
from collections.abc import Iterable

from tailrace.cli.errors import CommandError
from tailrace.cli.log.partition_choice import now_ms
from tailrace.log.disk import file_names
from tailrace.log.disk.checkpoints import CorruptCheckpoint, DirectoryIdentity
from tailrace.log.disk.files import DiskFiles, join
from tailrace.log.disk.overlay_files import OverlayFiles
from tailrace.metadata.image.effective_config import EffectiveConfigs
from tailrace.metadata.storage.metadata_log import MetadataLog
from tailrace.metadata.storage.metadata_snapshot import UnreadableSnapshot
from tailrace.metadata.storage.storage_format import METADATA_FOLDER
from tailrace.model.errors import KafkaError
from tailrace.records.batch import CorruptBatch


def topic_configs(paths: Iterable[str]) -> dict[str, dict[str, str]]:
    """Return the non-default configs by topic. The result is empty if no directory has a metadata log."""
    settings: dict[str, dict[str, str]] = {}
    for path in paths:
        directory = _metadata_directory(path)
        if directory is not None:
            settings |= _read(directory)
    return settings


def _metadata_directory(path: str) -> str | None:
    """Return the data directory of a path (itself or its parent) if it has a metadata log, else None."""
    for directory in (os.path.normpath(path), os.path.dirname(os.path.abspath(path))):
        if os.path.isdir(join(directory, METADATA_FOLDER)):
            return directory
    return None


def _read(directory: str) -> dict[str, dict[str, str]]:
    files = OverlayFiles(DiskFiles())
    try:
        identity = DirectoryIdentity.read(files, join(directory, file_names.META_PROPERTIES))
        log = MetadataLog(files, directory, identity, controller_endpoints=(), now_ms=now_ms())
    except (CorruptBatch, CorruptCheckpoint, KafkaError, UnreadableSnapshot) as error:
        raise CommandError(f"the topic configs in {directory} cannot be read: {error}") from None
    try:
        effective = EffectiveConfigs({}, identity.node_id)
        image = log.image
        return {topic: effective.topic_settings(image, image.topic_config(topic)) for topic in image.topics}
    finally:
        log.abandon()
