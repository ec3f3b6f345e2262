"""The checkpoint of a stream, as this source and Spark's Kafka connector write it, and folders that are none."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tailrace.log.disk.files import DiskFiles
from tailrace.model.ids import TopicPartition
from tailrace.spark.checkpoint import (
    WrongCheckpoint,
    committed_offsets,
    read_checkpoint,
    starting_offsets_json,
)
from tests.support.command import tailrace

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
METADATA = '{"batchWatermarkMs":0,"batchTimestampMs":1,"conf":{}}'


def checkpoint(folder: Path, offsets: dict[int, str], committed: list[int], version: str = "v1") -> str:
    """Write a checkpoint; `offsets` has the lines of the sources of each batch."""
    (folder / "offsets").mkdir(parents=True)
    (folder / "commits").mkdir()
    (folder / "metadata").write_text('{"id":"8a7c"}')
    for batch, lines in offsets.items():
        (folder / "offsets" / str(batch)).write_text(f"{version}\n{METADATA}\n{lines}")
        (folder / "offsets" / f".{batch}.crc").write_bytes(b"crc\0\0\0\1")
    for batch in committed:
        (folder / "commits" / str(batch)).write_text('v1\n{"nextBatchWatermarkMs":0}')
    return str(folder)


def read(path: str) -> Any:
    return read_checkpoint(DiskFiles(), path)


def test_a_batch_with_a_commit_is_committed_and_a_later_one_is_planned(tmp_path: Path) -> None:
    path = checkpoint(tmp_path / "c", {7: '{"t":{"0":5}}', 8: '{"t":{"0":9,"1":2}}'}, [6, 7])
    found = read(path)
    assert (found.query_id, found.committed_batch, found.planned_batch) == ("8a7c", 7, 8)
    assert (found.sources[0].committed, found.sources[0].planned) == ({T0: 5}, {T0: 9, T1: 2})
    assert committed_offsets(found, path) == {T0: 5}


def test_batch_numbers_are_compared_as_numbers(tmp_path: Path) -> None:
    path = checkpoint(tmp_path / "c", {9: '{"t":{"0":1}}', 10: '{"t":{"0":2}}'}, [9, 10])
    assert (read(path).committed_batch, read(path).planned_batch) == (10, None)


def test_a_checkpoint_of_version_2_has_the_names_of_its_sources(tmp_path: Path) -> None:
    lines = 'orders:{"t": {"0": 5}}\n1:{"logOffset":3}\n2:-'
    found = read(checkpoint(tmp_path / "c", {0: lines}, [0], "v2"))
    assert [(one.name, one.committed) for one in found.sources] == [("orders", {T0: 5}), ("1", None), ("2", None)]


def test_two_sources_of_one_partition_need_a_choice(tmp_path: Path) -> None:
    path = checkpoint(tmp_path / "c", {0: '{"t":{"0":5}}\n{"t":{"0":6}}'}, [0])
    with pytest.raises(WrongCheckpoint, match=r"two sources that read t-0, up to 5 and up to 6: .*--source \(0, 1\)"):
        committed_offsets(read(path), path)
    assert committed_offsets(read(path), path, "1") == {T0: 6}
    with pytest.raises(WrongCheckpoint, match="has no source '2'; its sources are 0, 1"):
        committed_offsets(read(path), path, "2")


def test_without_a_committed_batch_there_are_no_offsets_to_convert(tmp_path: Path) -> None:
    path = checkpoint(tmp_path / "c", {0: '{"t":{"0":5}}'}, [])
    assert read(path).planned_batch == 0
    with pytest.raises(WrongCheckpoint, match="has no committed batch"):
        committed_offsets(read(path), path)


@pytest.mark.parametrize(
    "line",
    [
        "7",
        '{"logOffset":3}',
        '{"t":{"0":-2}}',
        '{"t":{"0":true}}',
        '{"t":{"-1":3}}',
        '{"t":{"0":1e3}}',
        '{"t":{"²":3}}',
        '{"t":{"0":99999999999999999999}}',
    ],
)
def test_offsets_of_another_format_are_not_read_as_kafka_offsets(tmp_path: Path, line: str) -> None:
    path = checkpoint(tmp_path / "c", {0: line}, [0])
    assert read(path).sources[0].committed is None
    with pytest.raises(WrongCheckpoint, match="has no offsets of Kafka"):
        committed_offsets(read(path), path)


def test_damaged_checkpoints_are_refused_with_the_file(tmp_path: Path) -> None:
    with pytest.raises(WrongCheckpoint, match="is not the checkpoint of a Spark stream: it has no folder offsets"):
        read(str(tmp_path))
    path = checkpoint(tmp_path / "c", {0: "{}"}, [0, 1])
    with pytest.raises(WrongCheckpoint, match="offsets/1 is missing, but batch 1 is committed"):
        read(path)
    (tmp_path / "c" / "offsets" / "1").write_text("v3\n{}\n{}")
    with pytest.raises(WrongCheckpoint, match="offsets/1 has version 'v3'; the known ones are v1 and v2"):
        read(path)
    (tmp_path / "c" / "offsets" / "1").write_text("v1\n{}\n" + "[" * 100_000)
    with pytest.raises(WrongCheckpoint, match="offsets/1 has a line that is not JSON"):
        read(path)
    (tmp_path / "c" / "offsets" / "1").write_bytes(b"v1\n{}\n\xff")
    with pytest.raises(WrongCheckpoint, match="it is not text"):
        read(path)
    (tmp_path / "c" / "offsets" / "1").write_bytes(b"")
    with pytest.raises(WrongCheckpoint, match="has version ''"):
        read(path)


def test_the_command_shows_both_batches_and_prints_starting_offsets(tmp_path: Path) -> None:
    path = checkpoint(tmp_path / "c", {7: '{"t":{"0":5}}', 8: '{"t":{"0":9,"1":2}}'}, [7])
    shown = tailrace("offsets", "of-checkpoint", path)
    assert shown.status == 0
    assert "batch 7 is committed" in shown.out
    assert "batch 8 is planned, up to PLANNED, and not committed" in shown.out
    assert shown.lines[-2].split() == ["0", "t", "0", "5", "9"]
    document = tailrace("offsets", "of-checkpoint", path, "--json").json
    assert (document["committedBatch"], document["plannedBatch"]) == (7, 8)
    assert document["sources"][0]["partitions"][1] == {"topic": "t", "partition": 1, "committed": None, "planned": 2}
    printed = tailrace("offsets", "of-checkpoint", path, "--starting-offsets").out
    assert json.loads(printed) == {"t": {"0": 5}}
    assert printed.strip() == starting_offsets_json({T0: 5})


def test_a_folder_without_a_checkpoint_and_a_yes_without_a_group_are_errors(tmp_path: Path) -> None:
    wrong = tailrace("offsets", "of-checkpoint", tmp_path)
    assert (wrong.status, "is not the checkpoint of a Spark stream" in wrong.err) == (2, True)
    useless = tailrace("offsets", "of-checkpoint", tmp_path, "--yes")
    assert "--yes commits the offsets of --to-group NAME" in useless.err
    assert (
        "unknown option --to-grup (did you mean --to-group?)" in tailrace("offsets", "of-checkpoint", "--to-grup").err
    )
