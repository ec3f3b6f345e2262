"""Building logs from rows, and adopting them in a directory, without Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tailrace.log.recovery.adoption import NotAdoptable
from tailrace.model.configs.topic_settings import parse_topic_config
from tailrace.model.ids import TopicPartition
from tailrace.node.offline_node import OfflineNode
from tailrace.records.batch import Codec, RecordBatch
from tailrace.records.record import iter_records
from tailrace.spark.jobs.errors import JobError
from tailrace.spark.jobs.load.build import BuildTask, BuiltLog, build_log
from tailrace.spark.jobs.load.chunks import Chunk, ChunkPlan, ChunkWriter, batches_of
from tests.support.command import contents

_HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
_TYPES = {
    "topic": pa.string(),
    "partition": pa.int32(),
    "offset": pa.int64(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "key": pa.binary(),
    "value": pa.binary(),
    "headers": _HEADERS,
}
NOW_MS = 1_700_000_000_000


def rows(*dicts: dict[str, Any]) -> Any:
    names = list(dicts[0])
    arrays = [pa.array([one[name] for one in dicts], _TYPES[name]) for name in names]
    return pa.RecordBatch.from_arrays(arrays, names=names)


def read_chunk(chunk: Chunk) -> list[tuple[Any, ...]]:
    found: list[tuple[Any, ...]] = []
    for data in batches_of(chunk, piece_bytes=100):
        batch = RecordBatch(memoryview(bytes(data)))
        batch.check()
        found += [(one.offset, one.timestamp, one.key, one.value, one.headers) for one in iter_records(batch)]
    return found


small = st.none() | st.binary(max_size=3)
records = st.lists(
    st.tuples(
        st.sampled_from("ab"),
        st.integers(0, 2),
        st.integers(1, 5),
        st.none() | st.integers(0, 10**12),
        small,
        small,
        st.none() | st.lists(st.tuples(st.text(max_size=2), small), max_size=2),
    ),
    min_size=1,
    max_size=30,
)


@pytest.mark.long
@settings(max_examples=60)
@given(records, st.sampled_from(Codec), st.integers(1, 200), st.booleans())
def test_rows_are_encoded_into_batches_of_their_partitions(
    tmp_path_factory: pytest.TempPathFactory,
    drawn: list[tuple[Any, ...]],
    codec: Codec,
    batch_bytes: int,
    keeps_offsets: bool,
) -> None:
    folder = str(tmp_path_factory.mktemp("chunks"))
    plan = ChunkPlan(folder=folder, keeps_offsets=keeps_offsets, codec=codec, batch_bytes=batch_bytes, now_ms=NOW_MS)
    ends: dict[TopicPartition, int] = {}
    given_rows = []
    expected: dict[TopicPartition, list[tuple[Any, ...]]] = {}
    for topic, partition, step, timestamp, key, value, headers in drawn:
        place = TopicPartition(topic, partition)
        offset = ends[place] = ends.get(place, -1) + step
        given_rows.append(
            {
                "topic": topic,
                "partition": partition,
                "offset": offset,
                "timestamp": None if timestamp is None else timestamp * 1000,
                "key": key,
                "value": value,
                "headers": headers,
            }
        )
        stamp = NOW_MS if timestamp is None else timestamp
        expected.setdefault(place, []).append((offset, stamp, key, value, tuple(headers or ())))
    half = len(given_rows) // 2
    parts = [rows(*part) for part in (given_rows[:half], given_rows[half:]) if part]
    chunks = ChunkWriter(plan, 3).write(parts)
    assert {chunk.partition for chunk in chunks} == set(expected)
    for chunk in chunks:
        found = read_chunk(chunk)
        wanted = expected[chunk.partition]
        if keeps_offsets:
            assert found == wanted
            assert (chunk.first_offset, chunk.last_offset) == (wanted[0][0], wanted[-1][0])
        else:
            assert [one[1:] for one in found] == [one[1:] for one in wanted]
        assert chunk.records == len(wanted)


def test_keys_have_the_partitions_of_kafkas_clients(tmp_path: Path) -> None:
    from tailrace.client.producing.partitioner import partition_of_key

    plan = ChunkPlan(folder=str(tmp_path), topic="t", partitions=5)
    keys = [b"key %d" % number for number in range(50)]
    chunks = ChunkWriter(plan, 0).write([rows(*[{"key": key, "value": None} for key in keys])])
    found = {
        key: chunk.partition.partition for chunk in chunks if chunk.records for _, _, key, _, _ in read_chunk(chunk)
    }
    assert found == {key: partition_of_key(key, 5) for key in keys}


@pytest.mark.parametrize(
    ("bad", "sentence"),
    [
        ({"offset": 4}, "t-1 at offset 4: the record has offset 4, which does not follow 4"),
        ({"offset": None}, "t-1: a row has no offset"),
        ({"timestamp": -5000}, "t-1 at offset 5: the record has a timestamp before 1970"),
        ({"headers": [(None, b"x")]}, "t-1 at offset 5: the record has a header without a key"),
        ({"partition": None}, "row 1 of an input batch has no partition"),
        ({"partition": -3}, "a row has the invalid partition -3"),
    ],
)
def test_an_invalid_row_is_reported_with_partition_and_offset(
    tmp_path: Path, bad: dict[str, Any], sentence: str
) -> None:
    good = {"partition": 1, "offset": 4, "timestamp": 0, "value": b"v", "headers": None}
    writer = ChunkWriter(ChunkPlan(folder=str(tmp_path), topic="t", keeps_offsets=True), 0)
    with pytest.raises(JobError) as caught:
        writer.write([rows(good, {**good, "offset": 5, **bad})])
    assert str(caught.value) == sentence


def built(tmp_path: Path, node: OfflineNode, partition: TopicPartition, offsets: list[int], **plan: Any) -> BuiltLog:
    some = [
        {"partition": partition.partition, "offset": offset, "timestamp": offset * 1000, "value": b"value %d" % offset}
        for offset in offsets
    ]
    chunk_plan = ChunkPlan(folder=str(tmp_path / "staging"), topic=partition.topic, keeps_offsets=True, **plan)
    chunks = ChunkWriter(chunk_plan, 0).write([rows(*some)])
    log_end = node.log_end_state(partition)
    task = BuildTask(partition, tuple(chunks), chunk_plan.folder, log_end.config, log_end.leader_epoch, None, NOW_MS)
    return build_log(task)


def offsets_in(path: Path, topic: str) -> list[int]:
    from tests.support.source_rows import offsets, read

    return offsets(read({"path": str(path), "subscribe": topic, "kafka.isolation.level": "read_committed"}))


def test_an_adopted_log_accepts_appends(tmp_path: Path) -> None:
    import tailrace
    from tests.support.filled_topics import numbered, put

    path = tmp_path / "data"
    partition = TopicPartition("t", 0)
    first = [*range(500, 540), *range(560, 600)]
    with OfflineNode(str(path)) as node:
        node.create_topic("t", 1, {"segment.bytes": "1048576", "index.interval.bytes": "100"})
        one = built(tmp_path, node, partition, first, batch_bytes=300)
        done = node.adopt(partition, one.folder, one.leader_epoch)
        assert (done.first_offset, done.end_offset) == (500, 600)
    assert offsets_in(path, "t") == first
    with tailrace.Broker(path) as broker:
        put(broker.bootstrap, "t", 0, numbered(5))
    with OfflineNode(str(path)) as node:
        more = built(tmp_path, node, partition, [700, 701], batch_bytes=300)
        node.adopt(partition, more.folder, more.leader_epoch)
        again = built(tmp_path, node, partition, [701, 702], batch_bytes=300)
        with pytest.raises(NotAdoptable, match="t-0 ends at offset 702, but the segments for it start at 701"):
            node.adopt(partition, again.folder, again.leader_epoch)
    assert offsets_in(path, "t") == [*first, *range(600, 605), 700, 701]
    assert not list(path.rglob("*.broken"))
    with tailrace.Broker(path) as broker:
        put(broker.bootstrap, "t", 0, numbered(2))
    assert offsets_in(path, "t")[-3:] == [701, 702, 703]


def test_built_segments_have_the_bytes_of_a_broker(tmp_path: Path) -> None:
    """The same batches, appended by a leader and built by a load, make the same files."""
    from tailrace.log.disk.files import DiskFiles
    from tailrace.log.recovery.recovery import open_log

    config = parse_topic_config({"internal.segment.bytes": "2000", "index.interval.bytes": "300"})
    some = [
        {"partition": 0, "timestamp": number * 1000_000, "key": b"%d" % number, "value": b"v" * (number % 50)}
        for number in range(200)
    ]
    plan = ChunkPlan(folder=str(tmp_path / "chunks"), topic="t", batch_bytes=400, codec=Codec.LZ4)
    chunks = ChunkWriter(plan, 0).write([rows(*some)])
    log = open_log(DiskFiles(), str(tmp_path / "t-0"), config, now_ms=NOW_MS, clean=True)
    for chunk in chunks:
        for batch in batches_of(chunk):
            log.append_as_leader(bytearray(batch), leader_epoch=3, now_ms=NOW_MS)
    log.flush(NOW_MS)
    log.run_due(NOW_MS)
    log.close()
    one = build_log(BuildTask(TopicPartition("t", 0), tuple(chunks), str(tmp_path), config, 3, 0, NOW_MS))
    assert one.segments == 3
    assert contents(Path(one.folder)) == contents(tmp_path / "t-0")


def propose(tmp_path: Path, broker: Any, offsets: list[int], monkeypatch: pytest.MonkeyPatch) -> Any:
    """Load into the directory of a running broker, with the tasks run in this process."""
    from tailrace.spark.jobs.load import propose as load_propose

    def run_tasks(spark: Any, tasks: Any, work: Any, label: str) -> list[Any]:
        return [work(task) for task in tasks]

    monkeypatch.setattr(load_propose, "run_tasks", run_tasks)
    monkeypatch.setattr(load_propose, "BROKER_TIMEOUT_S", 10.0)
    plan = ChunkPlan(folder=str(tmp_path / "staging"), topic="t", keeps_offsets=True, batch_bytes=300)
    some = [{"partition": 0, "offset": offset, "timestamp": offset * 1000, "value": b"x"} for offset in offsets]
    chunks = ChunkWriter(plan, 0).write([rows(*some)])
    grouped = {TopicPartition("t", 0): tuple(chunks)}
    return load_propose.propose_load(None, broker.data, broker.bootstrap, grouped, {"t": 1}, {}, plan)


@pytest.mark.long
def test_a_running_broker_adopts_segments_and_serves_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import tailrace
    from tests.support.filled_topics import numbered, put
    from tests.support.source_rows import offsets, read

    with tailrace.Broker(tmp_path / "data") as broker:
        wire = {"kafka.bootstrap.servers": broker.bootstrap, "subscribe": "t"}
        found = propose(tmp_path, broker, [*range(70, 90)], monkeypatch)
        assert found.topics_created == ["t"]
        assert offsets(read(wire)) == [*range(70, 90)]
        put(broker.bootstrap, "t", 0, numbered(3))
        propose(tmp_path, broker, [95, 97], monkeypatch)
        put(broker.bootstrap, "t", 0, numbered(2))
        assert offsets(read(wire)) == [*range(70, 93), 95, 97, 98, 99]
        with pytest.raises(JobError, match="t-0 ends at offset 100, but the first record to load has offset 99"):
            propose(tmp_path, broker, [99, 120], monkeypatch)
        assert not list(Path(broker.data).rglob("load-proposal*"))
        broker.crash()
        broker.restart()
        assert offsets(read(wire)) == [*range(70, 93), 95, 97, 98, 99]
    with OfflineNode(str(tmp_path / "data")) as node:
        assert node.log_end_state(TopicPartition("t", 0)).end_offset == 100


@pytest.mark.long
def test_segments_that_no_longer_fit_are_refused_and_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import tailrace
    from tailrace.log.directories import bulk_load_proposal
    from tailrace.spark.jobs.load import propose as load_propose
    from tests.support.filled_topics import numbered, put
    from tests.support.source_rows import offsets, read

    with tailrace.Broker(tmp_path / "data") as broker:
        broker.create_topic("t")
        propose_now = bulk_load_proposal.propose

        def write_first(*arguments: Any) -> None:
            put(broker.bootstrap, "t", 0, numbered(4))
            propose_now(*arguments)

        monkeypatch.setattr(load_propose, "propose", write_first)
        with pytest.raises(JobError, match=r"the broker refused the load: t-0 ends at offset 4, .* start at 2"):
            propose(tmp_path, broker, [2, 3], monkeypatch)
        assert offsets(read({"kafka.bootstrap.servers": broker.bootstrap, "subscribe": "t"})) == [0, 1, 2, 3]
        assert not list(Path(broker.data).rglob("load-proposal*"))


def test_a_load_into_one_of_several_directories_is_refused(tmp_path: Path) -> None:
    import tailrace
    from tailrace.node.offline_node import NodeRefused

    paths = [str(tmp_path / "a"), str(tmp_path / "b")]
    with tailrace.Broker(config={"log.dirs": ",".join(paths)}) as broker:
        broker.create_topic("t", partitions=4)
    before = contents(tmp_path)
    node = OfflineNode(paths[0])
    with pytest.raises(NodeRefused, match="is one of 2 log directories of its broker"):
        node.__enter__()
    assert contents(tmp_path) == before
