"""Moves the data of a single broker into the folder of the first shard. Other files stay where they are.

`shards.json` is written first, so a single broker no longer opens the directory. Then each file and folder is renamed,
`meta.properties` last. If the process ends in between, the next start moves the rest.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from tailrace.log.directories.shards_file import check_shards, read_shards, shard_folder, write_shards
from tailrace.log.disk.directory_lock import lock_directory
from tailrace.log.disk.file_names import (
    CLEAN_SHUTDOWN,
    META_PROPERTIES,
    REMOTE_INDEXES,
    parse_partition_folder,
)
from tailrace.log.disk.files import Entry, File, Files, join
from tailrace.model.log_fields import fields

_log = logging.getLogger("tailrace.shards")


def take_directories(files: Files, paths: Sequence[str], count: int) -> list[File]:
    """Lock directories for `count` shards, and return the locks.

    Raise DirectoryInUse if another process uses one of them, or ShardedDirectory if one has more shards.
    """
    locks = []
    for path in paths:
        locks.append(lock_directory(files, path))
        check_shards(files, path, count)
    for path in paths:
        if read_shards(files, path) != count:
            write_shards(files, path, count)
        _adopt(files, path)
    return locks


def _adopt(files: Files, path: str) -> None:
    entries = files.entries(path)
    if not any(one.name == META_PROPERTIES for one in entries):
        return
    moving = [one.name for one in entries if _belongs_to_broker(one)]
    target = shard_folder(path, 1)
    _log.info("the data of a single broker is moved to shard 1", extra=fields(path=path, entries=len(moving)))
    files.make_directory(target)
    for name in sorted(moving, key=lambda name: name == META_PROPERTIES):
        files.replace(join(path, name), join(target, name))
    files.sync_directory(target)
    files.sync_directory(path)


def _belongs_to_broker(entry: Entry) -> bool:
    if entry.is_directory:
        return entry.name == REMOTE_INDEXES or parse_partition_folder(entry.name) is not None
    return entry.name in (META_PROPERTIES, CLEAN_SHUTDOWN) or entry.name.endswith("checkpoint")
