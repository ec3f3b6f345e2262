"""Reading a topic with Spark: this source, from files and over the wire, compared with Spark's own Kafka connector.

    python -m benchmarks.spark_read [millions of records]

Records of about 110 bytes in one partition of a broker in this process. Its CPU does not count: only Spark's JVM and
Python workers do. Connectors take turns; the best of the rounds counts. The decode kernel alone is measured first.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa

import tailrace
from tailrace.client.cluster.cluster_client import ClusterClient
from tailrace.client.producing.producer import BatchProducer
from tailrace.model.ids import TopicPartition
from tailrace.records.batch import Codec
from tailrace.records.builder import BatchBuilder
from tailrace.records.columnar import columns
from tailrace.spark.jobs.export.export import export
from tests.support.spark_session import spark_session, stop_session

PER_BATCH = 1000
ROUNDS = 4  # Java gets faster even in the second and the third round
TUNED = {"kafka.max.poll.records": "20000", "kafka.max.partition.fetch.bytes": "16777216"}
PLAIN = columns.OFFSET | columns.TIMESTAMP | columns.TIMESTAMP_TYPE | columns.KEY | columns.VALUE


def built(number: int, codec: Codec = Codec.NONE, per_batch: int = PER_BATCH) -> bytes:
    batch = BatchBuilder(base_offset=number * per_batch, codec=codec)
    for index in range(per_batch):
        value = b'{"id": %09d, "customer": %06d, "amount": %05d, "note": "two coffees and a cake"}'
        order = number * per_batch + index
        key = b"customer-%05d" % (order * 7919 % 100_000)
        batch.append(1_700_000_000_000 + order, key, value % (order, order * 7919 % 1_000_000, order % 99_999))
    return batch.build()


def kernel() -> None:
    print(f"kernel ({'compiled' if columns.COMPILED else 'interpreted'}), with CRC, one core:")
    for name, codec, wanted, per_batch in (
        ("key, value, offset, timestamp", Codec.NONE, PLAIN, 140),
        ("value", Codec.NONE, columns.VALUE, 140),
        ("offset", Codec.NONE, columns.OFFSET, 140),
        ("one record a batch", Codec.NONE, PLAIN, 1),
        ("lz4", Codec.LZ4, PLAIN, 140),
        ("zstd", Codec.ZSTD, PLAIN, 140),
        ("snappy", Codec.SNAPPY, PLAIN, 140),
    ):
        data = b"".join(built(number, codec, per_batch) for number in range(14_000 // per_batch))
        count = 14_000 // per_batch * per_batch
        best = min(_decoding(data, wanted) for _ in range(ROUNDS))
        print(f"  {name:32} {count * 20 / best / 1e6:6.1f} M records/s {len(data) * 20 / best / 1e6:7.0f} MB/s")


def _decoding(data: bytes, wanted: int) -> float:
    found = columns.RecordColumns(wanted, 0, 2**62, allocate=pa.allocate_buffer)
    start = time.process_time()
    for _ in range(20):
        place = 0
        while place < len(data):
            place = found.put_batches(data, place, len(data))
            if found.is_full:
                found.reset()
    return time.process_time() - start


def fill(bootstrap: str, batches: int) -> None:
    some = [built(number) for number in range(50)]
    with ClusterClient(bootstrap) as cluster:
        producer = BatchProducer(cluster, idempotent=False)
        for number in range(batches):
            data = bytearray(some[number % len(some)])
            data[:8] = bytes(8)
            producer.send({TopicPartition("orders", 0): data})


def cpu_of_spark() -> float:
    """Return the CPU seconds of the JVM and of its workers, including those that have ended."""
    parents: dict[int, int] = {}
    used: dict[int, float] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            parents[int(entry.name)] = int(fields[1])
            used[int(entry.name)] = sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
    me = os.getpid()

    def is_below(process: int) -> bool:
        while process in parents:
            process = parents[process]
            if process == me:
                return True
        return False

    return sum(seconds for process, seconds in used.items() if is_below(process))


def main(arguments: list[str]) -> None:
    kernel()
    batches = int(float(arguments[0] if arguments else "2") * 1_000_000 / PER_BATCH)
    with tempfile.TemporaryDirectory() as directory, tailrace.Broker(f"{directory}/data") as broker:
        broker.create_topic("orders", config={"retention.ms": "-1"})
        fill(broker.bootstrap, batches)
        spark = spark_session(with_connector=True, is_hasty=False)
        try:
            spark_queries(spark, broker, Path(directory), batches * PER_BATCH)
        finally:
            stop_session()


def spark_queries(spark: Any, broker: tailrace.Broker, directory: Path, count: int) -> None:
    wire = {"kafka.bootstrap.servers": broker.bootstrap}
    sources: dict[str, Callable[[], Any]] = {
        "tailrace, files": lambda: reader("tailrace", {"path": broker.data}),
        "tailrace, wire": lambda: reader("tailrace", wire),
        "connector, tuned": lambda: reader("kafka", {**wire, **TUNED}),
        "connector, defaults": lambda: reader("kafka", wire),
    }

    def reader(source: str, options: dict[str, str]) -> Any:
        return spark.read.format(source).options(**options, subscribe="orders", minPartitions="2")

    queries: dict[str, Callable[[Any], object]] = {
        "count": lambda frame: frame.count(),
        "sum(length(value))": lambda frame: frame.selectExpr("sum(length(value))").collect(),
        "to Parquet": lambda frame: frame.write.mode("overwrite").parquet(f"{directory}/parquet"),
    }
    print(f"{count / 1e6:g} M records, CPU seconds (wall):")
    for query, run in queries.items():
        best: dict[str, tuple[float, float]] = {}
        for _ in range(ROUNDS):
            for name, made in sources.items():
                cpu, wall = cpu_of_spark(), time.perf_counter()
                run(made().load())
                took = cpu_of_spark() - cpu, time.perf_counter() - wall
                best[name] = min(best.get(name, took), took)
        reported(query, best)
    best = {}
    for number in range(ROUNDS):
        # Raw records, written inside the workers; Spark's writer above compresses with snappy.
        for compression in ("zstd", "snappy"):
            output, cpu, wall = f"{directory}/export-{compression}-{number}", cpu_of_spark(), time.perf_counter()
            export(spark, str(broker.data), output, topics=["orders"], compression=compression)
            took = cpu_of_spark() - cpu, time.perf_counter() - wall
            best[compression] = min(best.get(compression, took), took)
    reported("tailrace job export", best)


def reported(query: str, best: dict[str, tuple[float, float]]) -> None:
    print(
        f"  {query:20} " + "   ".join(f"{name} {cpu:.1f} ({wall:.1f})" for name, (cpu, wall) in best.items()),
        flush=True,
    )


if __name__ == "__main__":
    main(sys.argv[1:])
