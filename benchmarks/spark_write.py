"""Writing a topic with Spark: this sink, exactly once and at least once, compared with Spark's own Kafka connector.

    python -m benchmarks.spark_write [millions of records]

Records of about 110 bytes from a Parquet file, by key into four partitions of a broker in this process. The broker's
CPU does not count: only Spark's JVM and Python workers do. Connectors take turns; the best of the rounds counts.
Reading the file without writing is measured too, for comparison. The encode kernel alone is measured first.
"""

from __future__ import annotations

import sys
import tempfile
import time
from array import array
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import tailrace
from benchmarks.spark_read import cpu_of_spark
from tailrace.records.codecs.crc32c import crc32c
from tailrace.records.columnar import column_encoder
from tailrace.spark.sink.task_writer import bytes_input
from tests.support.spark_session import spark_session, stop_session

ROUNDS = 2
PARTITIONS = 4
# Settings with which Spark's sink is fastest: few, large requests.
TUNED = {"kafka.batch.size": "524288", "kafka.linger.ms": "50", "kafka.buffer.memory": "134217728"}


def rows(start: int, count: int) -> Any:
    numbers = range(start, start + count)
    value = b'{"id": %09d, "customer": %06d, "amount": %05d, "note": "two coffees and a cake"}'
    keys = pa.array([b"customer-%05d" % (n * 7919 % 100_000) for n in numbers], pa.binary())
    values = pa.array([value % (n, n * 7919 % 1_000_000, n % 99_999) for n in numbers], pa.binary())
    return pa.table({"key": keys, "value": values})


def kernel() -> None:
    batch = rows(0, 10_000).to_batches()[0]
    keys, values = bytes_input(batch.column(0)), bytes_input(batch.column(1))
    best = min(_encoding(keys, values) for _ in range(5))
    name = "compiled" if column_encoder.COMPILED else "interpreted"
    print(
        f"kernel ({name}), partition by key, encode, checksum, digest, one core: {10_000 / best / 1e6:.1f} M records/s"
    )


def _encoding(keys: Any, values: Any) -> float:
    count, targets = 10_000, array("i", bytes(40_000))
    batches = [column_encoder.OpenBatch() for _ in range(PARTITIONS)]
    encoder = column_encoder.RowEncoder(524_288)
    start = time.process_time()
    for _ in range(20):
        column_encoder.choose_batches(
            targets, count, keys, None, None, array("i", [PARTITIONS]), array("i", [0]), array("i", [0])
        )
        row = 0
        while row < count:
            row = encoder.encode_rows(batches, targets, keys, values, None, None, 1_700_000_000_000, row, count)
            if row < count:
                batch = batches[targets[row]]
                crc32c(memoryview(batch.buffer)[21 : batch.size])
                batch.restart()
    return (time.process_time() - start) / 20


def main(arguments: list[str]) -> None:
    kernel()
    count = int(float(arguments[0] if arguments else "2") * 1_000_000)
    with tempfile.TemporaryDirectory() as directory, tailrace.Broker(f"{directory}/data") as broker:
        path = f"{directory}/rows.parquet"
        with pq.ParquetWriter(path, rows(0, 1).schema) as file:
            for start in range(0, count, 100_000):
                file.write_table(rows(start, min(100_000, count - start)))
        spark = spark_session(with_connector=True, is_hasty=False)
        try:
            writes(spark, broker, path, count)
        finally:
            stop_session()


def writes(spark: Any, broker: tailrace.Broker, path: str, count: int) -> None:
    wire = {"kafka.bootstrap.servers": broker.bootstrap}
    sinks: dict[str, tuple[str, dict[str, str]]] = {
        "nowhere": ("noop", {}),
        "tailrace, exactly once": ("tailrace", wire),
        "tailrace, at least once": ("tailrace", {**wire, "deliveryGuarantee": "at-least-once"}),
        "connector, tuned": ("kafka", {**wire, **TUNED}),
        "connector, defaults": ("kafka", wire),
    }
    best: dict[str, tuple[float, float]] = {}
    for number in range(ROUNDS + 1):
        for name, (sink, options) in sinks.items():
            topic = f"{sink}-{number}-{len(options)}"
            broker.create_topic(topic, partitions=PARTITIONS)
            frame = spark.read.parquet(path)
            cpu, wall = cpu_of_spark(), time.perf_counter()
            write: Callable[[], None] = frame.write.format(sink).mode("append").options(topic=topic, **options).save
            write()
            took = cpu_of_spark() - cpu, time.perf_counter() - wall
            if number:  # Java warms up in the first round
                best[name] = min(best.get(name, took), took)
    print(f"{count / 1e6:g} M records, CPU seconds of JVM and workers (wall):")
    for name, (cpu, wall) in best.items():
        print(f"  {name:26} {cpu:6.1f} ({wall:.1f})   {count / cpu / 1e6:5.2f} M records per CPU second")


if __name__ == "__main__":
    main(sys.argv[1:])
