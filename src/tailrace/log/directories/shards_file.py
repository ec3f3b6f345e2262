"""`shards.json`: marks a directory whose data is in the folders of several brokers.

    ./data/shards.json      {"shards": 2}
    ./data/shard1/          the log directory of the first broker
    ./data/shard2/          the log directory of the second broker

`tailrace serve --shards 2` writes it. One broker alone refuses the directory: it would miss topics of the other shards.
The names of the folders have no dash, so they cannot be those of partitions.
"""

from __future__ import annotations

import json
from typing import Final

from tailrace.log.disk.files import Files, join, write_atomically

SHARDS_FILE: Final = "shards.json"


class ShardedDirectory(Exception):
    """The directory has the data of more shards than the start asks for."""


def shard_folder(path: str, number: int) -> str:
    """Return the log directory of a shard. Numbers begin with 1."""
    return join(path, f"shard{number}")


def read_shards(files: Files, path: str) -> int:
    """Return the number of shards in a directory, or 1 if it is that of a single broker."""
    place = join(path, SHARDS_FILE)
    if not files.exists(place):
        return 1
    try:
        count = json.loads(files.read(place))["shards"]
        if isinstance(count, int) and count > 1:
            return count
    except (ValueError, KeyError, TypeError):
        pass
    raise ShardedDirectory(f'{place} is damaged: write {{"shards": N}}, where shardN is the last folder')


def write_shards(files: Files, path: str, count: int) -> None:
    write_atomically(files, join(path, SHARDS_FILE), f"{json.dumps({'shards': count})}\n".encode())


def check_shards(files: Files, path: str, wanted: int = 1) -> None:
    """Raise ShardedDirectory if a directory has more shards than `wanted`."""
    count = read_shards(files, path)
    if count > wanted:
        raise ShardedDirectory(
            f"{path} has the data of {count} shards: start it with --shards {count}, or more. "
            "The number of shards cannot shrink"
        )
