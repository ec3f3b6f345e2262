"""A directory of a single broker becomes that of the first shard, also after a crash in between."""

from __future__ import annotations

import pytest

from tailrace.log.directories.shards_file import ShardedDirectory, check_shards, read_shards
from tailrace.log.disk.directory_lock import DirectoryInUse
from tailrace.log.disk.files import Files
from tailrace.node.shards.adoption import take_directories
from tests.support.memory_files import MemoryFiles, memory_files

SINGLE = {
    "meta.properties": b"version=1\n",
    "server.properties": b"# of the user\n",
    "orders-0/00000000000000000000.log": b"records",
    "orders-0.0123456789abcdef0123456789abcdef-delete/x": b"",
    "__cluster_metadata-0/00000000000000000000.log": b"metadata",
    "recovery-point-offset-checkpoint": b"0\n0\n",
    ".kafka_cleanshutdown": b"",
    "notes/a": b"of the user",
}


def names(files: Files, path: str) -> set[str]:
    return {one.name for one in files.entries(path)}


def test_a_new_directory_gets_its_number_of_shards() -> None:
    files = MemoryFiles()
    take_directories(files, ["/data"], 2)
    assert read_shards(files, "/data") == 2
    assert names(files, "/data") == {"shards.json", ".lock"}


def test_the_files_of_a_single_broker_move_and_those_of_the_user_stay() -> None:
    files = memory_files(SINGLE, "/data")
    take_directories(files, ["/data"], 2)
    assert names(files, "/data") == {".lock", "shards.json", "shard1", "server.properties", "notes"}
    assert names(files, "/data/shard1") == {
        "meta.properties", "orders-0", "orders-0.0123456789abcdef0123456789abcdef-delete", "__cluster_metadata-0",
        "recovery-point-offset-checkpoint", ".kafka_cleanshutdown",
    }  # fmt: skip
    assert files.read("/data/shard1/orders-0/00000000000000000000.log") == b"records"


class Crash(Exception):
    pass


def test_a_move_that_was_interrupted_is_resumed_at_every_point() -> None:
    for renames in range(7):
        files = memory_files(SINGLE, "/data")
        replace, left = files.replace, [renames]

        def crash(source: str, target: str, replace=replace, left=left) -> None:  # type: ignore[no-untyped-def]
            if not left[0]:
                raise Crash
            left[0] -= 1
            replace(source, target)

        files.replace = crash  # type: ignore[method-assign]
        with pytest.raises(Crash):
            take_directories(files, ["/data"], 3)
        files.replace = replace  # type: ignore[method-assign]
        if renames:  # from here on a single broker must not format the directory again
            with pytest.raises(ShardedDirectory):
                check_shards(files, "/data")
        files.locked.clear()  # the process has ended
        take_directories(files, ["/data"], 3)
        assert "meta.properties" not in names(files, "/data")
        assert len(names(files, "/data/shard1")) == 6


def test_fewer_shards_are_refused_and_more_are_stored() -> None:
    files = MemoryFiles()
    for lock in take_directories(files, ["/data"], 2):
        lock.close()
    for lock in take_directories(files, ["/data"], 4):
        lock.close()
    with pytest.raises(ShardedDirectory, match="/data has the data of 4 shards: start it with --shards 4, or more"):
        take_directories(files, ["/data"], 3)
    assert read_shards(files, "/data") == 4


def test_a_directory_in_use_is_refused_and_not_changed() -> None:
    files = memory_files(SINGLE, "/data")
    with_lock = files.lock("/data/.lock")
    with pytest.raises(DirectoryInUse, match="/data is in use by another process"):
        take_directories(files, ["/data"], 2)
    assert "meta.properties" in names(files, "/data")
    with_lock.close()


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b'{"shards": 0}', b'{"shards": "2"}', b"\xff"])
def test_a_damaged_file_is_named(content: bytes) -> None:
    files = memory_files({"shards.json": content}, "/data")
    with pytest.raises(ShardedDirectory, match=r"/data/shards.json is damaged"):
        read_shards(files, "/data")
