"""partition_folders: the folders of a log directory that are partitions, and those to delete."""

from __future__ import annotations

import logging

from tailrace.log.disk import file_names
from tailrace.log.disk.files import Files, join
from tailrace.model.ids import TopicPartition

_log = logging.getLogger(__name__)

_OTHER_FOLDERS = {f"{file_names.CLUSTER_METADATA_TOPIC}-0", file_names.REMOTE_INDEXES}


def partition_folders(files: Files, path: str) -> tuple[list[tuple[str, TopicPartition]], list[str]]:
    """Return the names of folders with a log or a copy, each with its partition, and the paths of deleted ones."""
    folders: list[tuple[str, TopicPartition]] = []
    deleted: list[str] = []
    futures: set[TopicPartition] = set()
    for entry in sorted(files.entries(path)):
        if not entry.is_directory or entry.name in _OTHER_FOLDERS:
            continue
        if file_names.is_marked(entry.name, file_names.DELETE_FOLDER):
            deleted.append(join(path, entry.name))
            continue
        partition = file_names.parse_partition_folder(entry.name)
        if partition is None or file_names.is_marked(entry.name, file_names.STRAY_FOLDER):
            continue
        if file_names.is_marked(entry.name, file_names.FUTURE_FOLDER):
            if partition in futures:
                _log.warning("%s is a second folder of %s in this directory and is ignored", entry.name, partition)
                continue
            futures.add(partition)
        folders.append((entry.name, partition))
    return folders, deleted
