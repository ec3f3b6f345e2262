"""Apache Kafka starts on a directory that a load has built, serves every record, and appends new ones."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from tailrace.client.batches import fetch_range
from tailrace.client.cluster.cluster_client import ClusterClient
from tailrace.client.offsets import earliest_offsets, latest_offsets
from tailrace.model.ids import TopicPartition
from tailrace.node.offline_node import OfflineNode
from tailrace.records.batch import Codec, RecordBatch
from tailrace.records.record import iter_records
from tailrace.spark.jobs.load.build import BuildTask, build_log
from tailrace.spark.jobs.load.chunks import ChunkPlan, ChunkWriter
from tests.support.filled_topics import numbered, put
from tests.support.kafka_broker import KafkaBroker
from tests.support.kafka_install import KafkaInstallation

NOW_MS = 1_700_000_000_000


@pytest.mark.slow
@pytest.mark.parametrize("codec", [Codec.NONE, Codec.LZ4])
def test_kafka_serves_and_appends_to_a_loaded_directory(
    kafka: KafkaInstallation, kafka_broker: Callable[..., KafkaBroker], tmp_path: Path, codec: Codec
) -> None:
    partition = TopicPartition("restored", 1)
    offsets = [*range(1000, 9000), *range(9500, 20000, 3)]
    data = tmp_path / "kafka-0" / "data"
    data.parent.mkdir()
    rows = pa.RecordBatch.from_arrays(
        [
            pa.array([1] * len(offsets), pa.int32()),
            pa.array(offsets, pa.int64()),
            pa.array([(NOW_MS + offset) * 1000 for offset in offsets], pa.timestamp("us", tz="UTC")),
            pa.array([b"value %d " % offset * 30 for offset in offsets], pa.binary()),
        ],
        names=["partition", "offset", "timestamp", "value"],
    )
    with OfflineNode(str(data)) as node:
        node.create_topic("restored", 2, {"segment.bytes": "1048576", "retention.ms": "-1"})
        plan = ChunkPlan(folder=str(tmp_path / "staging"), topic="restored", keeps_offsets=True, codec=codec)
        chunks = tuple(ChunkWriter(plan, 0).write([rows]))
        log_end = node.log_end_state(partition)
        epoch = log_end.leader_epoch
        one = build_log(BuildTask(partition, chunks, plan.folder, log_end.config, epoch, None, NOW_MS))
        assert one.segments > 1 or codec is not Codec.NONE
        node.adopt(partition, one.folder, epoch)

    folder = data / "restored-1"
    indexes = [*sorted(folder.glob("*.index")), *sorted(folder.glob("*.timeindex"))]
    reported = kafka.dump(*indexes, options=["--index-sanity-check"])
    assert reported.count("passed sanity check") == len(indexes), reported
    assert "mismatch" not in kafka.dump(*indexes, *sorted(folder.glob("*.log")), options=[]).lower()

    with kafka_broker(properties={"log.dirs": str(data)}) as broker, ClusterClient(broker.bootstrap) as cluster:
        assert earliest_offsets(cluster, [partition]) == {partition: 1000}
        assert latest_offsets(cluster, [partition]) == {partition: offsets[-1] + 1}
        found = [
            (record.offset, record.timestamp, record.value)
            for batch in fetch_range(cluster, partition, 1000, offsets[-1] + 1)
            if isinstance(batch, RecordBatch)
            for record in iter_records(batch)
        ]
        assert found == [(offset, NOW_MS + offset, b"value %d " % offset * 30) for offset in offsets]
        put(broker.bootstrap, "restored", 1, numbered(3))
        assert latest_offsets(cluster, [partition]) == {partition: offsets[-1] + 4}
        assert not list((data / "restored-1").glob("*.deleted"))
