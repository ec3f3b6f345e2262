"""Loads that are stopped during the adoption of segments, and run again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tailrace
from tailrace.log.recovery import adoption
from tailrace.model.ids import TopicPartition
from tailrace.spark.jobs.errors import JobError
from tailrace.spark.jobs.load import load as load_module
from tailrace.spark.jobs.load.chunks import Chunk, ChunkPlan, ChunkWriter
from tailrace.spark.jobs.load.state import LoadState, PlannedLoad
from tailrace.spark.jobs.place import Place
from tailrace.spark.jobs.replay import copy as replay_copy
from tests.support.inline_spark import InlineSpark
from tests.support.source_rows import read

NOW_MS = 1_700_000_000_000
PER_PARTITION = 60
CONFIG = {"internal.segment.bytes": "600", "retention.ms": "-1"}


class Killed(Exception):
    pass


def values(partition: int) -> list[bytes]:
    return [b"%d-%d" % (partition, number) for number in range(PER_PARTITION)]


def chunks_of(tmp_path: Path, *, keeps_offsets: bool) -> tuple[ChunkPlan, dict[TopicPartition, tuple[Chunk, ...]]]:
    """Return records for two partitions, optionally with offsets that skip every other number."""
    folder = tmp_path / "staging"
    folder.mkdir()
    plan = ChunkPlan(folder=str(folder), topic="t", keeps_offsets=keeps_offsets, batch_bytes=200, now_ms=NOW_MS)
    numbers = range(PER_PARTITION)
    batches = [
        pa.record_batch({
            "partition": pa.array([partition] * PER_PARTITION, pa.int32()),
            **({"offset": pa.array([2 * number for number in numbers], pa.int64())} if keeps_offsets else {}),
            "value": pa.array(values(partition), pa.binary()),
        })
        for partition in range(2)
    ]  # fmt: skip
    return plan, load_module.by_partition(ChunkWriter(plan, 0).write(batches))


def stopping(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, after: int) -> None:
    """Let a function succeed a number of times, and then fail."""
    function, left = getattr(owner, name), iter(range(after))

    def mortal(*args: Any) -> Any:
        if next(left, None) is None:
            raise Killed
        return function(*args)

    monkeypatch.setattr(owner, name, mortal)


def loaded(place: dict[str, str]) -> Iterator[list[bytes]]:
    for partition in range(2):
        rows = read({**place, "assign": f'{{"t": [{partition}]}}'})
        yield [bytes(row["VALUE"]) for row in rows]


@pytest.mark.parametrize("keeps_offsets", [True, False])
@pytest.mark.parametrize("segments", [0, 1, 2, 3])
def test_a_stopped_load_into_a_directory_is_resumed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, segments: int, keeps_offsets: bool
) -> None:
    """The load is stopped after a number of segments, several per partition, were adopted."""
    plan, grouped = chunks_of(tmp_path, keeps_offsets=keeps_offsets)
    data, state = str(tmp_path / "data"), LoadState(str(tmp_path / "state"), "data")

    def run() -> Any:
        return load_module._adopt(InlineSpark(), data, grouped, {"t": 2}, CONFIG, plan, state)

    with monkeypatch.context() as patch:
        stopping(patch, adoption, "_moved", segments)
        with pytest.raises(Killed):
            run()
    rest = sum(one.records for one in run().partitions)
    assert rest == 2 * PER_PARTITION if segments == 0 else 0 < rest < 2 * PER_PARTITION
    nothing = run()
    assert nothing.loaded_before == list(grouped)
    assert not nothing.partitions
    assert list(loaded({"path": data})) == [values(0), values(1)]


@pytest.mark.parametrize("batches", [0, 1, 9])
def test_a_stopped_load_into_a_cluster_is_resumed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, batches: int
) -> None:
    """The load is stopped after a number of batches were sent; the batches after the saved state are found in the
    target."""
    _, grouped = chunks_of(tmp_path, keeps_offsets=False)
    state = str(tmp_path / "state")
    with tailrace.Broker() as broker:

        def run() -> Any:
            return load_module._produce(InlineSpark(), Place(bootstrap=broker.bootstrap), grouped, {"t": 2}, {}, state)

        with monkeypatch.context() as patch:
            stopping(patch, replay_copy._Copy, "_send", batches)
            with pytest.raises(Killed):
                run()
        run()
        assert sum(one.records for one in run().partitions) == 0
        wire = {"kafka.bootstrap.servers": broker.bootstrap}
        assert list(loaded(wire)) == [values(0), values(1)]


def test_resuming_with_a_different_number_of_records_is_refused(tmp_path: Path) -> None:
    plan, grouped = chunks_of(tmp_path, keeps_offsets=False)
    state = LoadState(str(tmp_path / "state"), "data")
    state.write({TopicPartition("t", 0): PlannedLoad(0, 10, 10)})
    with pytest.raises(JobError, match="the input has 60 records, but the state is that of a load of 10"):
        load_module._adopt(InlineSpark(), str(tmp_path / "data"), grouped, {"t": 2}, CONFIG, plan, state)


def test_the_state_of_a_load_into_another_target_is_refused(tmp_path: Path) -> None:
    LoadState(str(tmp_path), "/data").write({})
    with pytest.raises(JobError, match="state of a load into /data"):
        LoadState(str(tmp_path), "/elsewhere").read()
