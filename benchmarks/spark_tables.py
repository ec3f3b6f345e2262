"""Topics as tables: exports to Iceberg and Delta, compared with Spark's own Kafka connector and with plain Parquet.

    python -m benchmarks.spark_tables [millions of records] [seconds of following] [iceberg|delta …]

With 0 million records, only the follower is measured.

First, all records of a topic are exported. CPU seconds (wall) are those of the driver, Spark's JVM and its workers,
without the broker, which is a process of its own. There is no Iceberg or Delta jar for the newest Spark, so Spark's
connector writes Parquet. Contenders take turns; the best of the rounds counts.

Then a follower exports 10,000 records a second. The freshness of a record is the time from its producer's timestamp to
the timestamp of the commit that has it.
"""

from __future__ import annotations

import bisect
import json
import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from benchmarks.kafka import cpu_seconds
from benchmarks.spark_read import PER_BATCH, TUNED, cpu_of_spark, fill
from tailrace.client.admin import NewTopic, create_topic
from tailrace.client.cluster.cluster_client import ClusterClient
from tailrace.client.producing.producer import BatchProducer
from tailrace.model.ids import TopicPartition
from tailrace.records.builder import BatchBuilder
from tailrace.spark.jobs.export.export import export as export_parquet
from tailrace.spark.jobs.place import Place
from tailrace.spark.tables.follow import Follower, FollowPolicy
from tailrace.spark.tables.formats.delta import DeltaTable
from tailrace.spark.tables.formats.iceberg import IcebergTable
from tailrace.spark.tables.formats.table import Table
from tailrace.spark.tables.latest.latest_rounds import LatestRounds
from tailrace.spark.tables.round_writer import Append, RoundWriter
from tailrace.spark.tables.table_export import ExportSettings, TableExport, export_once
from tailrace.spark.tables.topic_source import TopicSource
from tests.support.spark_session import spark_session, stop_session
from tests.support.tailrace_process import TailraceProcess

ROUNDS = 3
RATE = 10_000  # records a second
FRESHNESS_S = 1.0
LARGE_FILE = 64 * 2**20
FORMS = ("iceberg", "delta")
NAME = "lake.orders"


def table_at(form: str, folder: Path) -> Table:
    if form == "delta":
        return DeltaTable(str(folder))
    folder.mkdir(parents=True, exist_ok=True)
    return IcebergTable(
        NAME, "bench", {"type": "sql", "uri": f"sqlite:///{folder}/catalog.db", "warehouse": f"file://{folder}"}
    )


def exported(spark: Any, form: str, source: str, folder: Path, rounds: RoundWriter, *, path: Path | None = None) -> int:
    files = None if path is None else Place.parse(str(path))
    with TopicSource(Place.parse(source), ["orders"], files=files) as topics:
        settings = ExportSettings(rounds=rounds)
        return export_once(TableExport(spark, topics, table_at(form, folder), settings)).records


def compare(spark: Any, broker: TailraceProcess, scratch: Path, count: int) -> None:
    servers = broker.bootstrap

    def connector(out: Path) -> None:
        reader = spark.read.format("kafka").options(**TUNED, subscribe="orders", minPartitions="2")
        reader.option("kafka.bootstrap.servers", servers).load().write.parquet(str(out))

    ways: dict[str, Callable[[Path], object]] = {
        "connector (tuned) to Parquet": connector,
        "export to Parquet": lambda out: export_parquet(spark, servers, str(out), topics=["orders"]),
        "export to Iceberg": lambda out: exported(spark, "iceberg", servers, out, Append()),
        "export to Delta": lambda out: exported(spark, "delta", servers, out, Append()),
        "export to Iceberg, from files": lambda out: exported(
            spark, "iceberg", servers, out, Append(), path=broker.data
        ),
        "export to Delta, --latest": lambda out: exported(spark, "delta", servers, out, LatestRounds()),
    }
    best: dict[str, tuple[float, float]] = {}
    for number in range(ROUNDS):
        for name, run in ways.items():
            cpu, wall = used(broker), time.perf_counter()
            run(scratch / f"{name}-{number}")
            took = used(broker) - cpu, time.perf_counter() - wall
            best[name] = min(best.get(name, took), took)
    of_connector, of_parquet = best["connector (tuned) to Parquet"][0], best["export to Parquet"][0]
    print(f"{count / 1e6:g} M records: CPU seconds (wall), CPU beside the connector's and beside plain Parquet")
    for name, (cpu, wall) in best.items():
        print(f"  {name:32} {cpu:6.1f} ({wall:5.1f})   {cpu / of_connector:5.2f}   {cpu / of_parquet:5.2f}", flush=True)


def used(broker: TailraceProcess) -> float:
    """Return the CPU seconds of this process, the JVM and its workers."""
    return time.process_time() + cpu_of_spark() - cpu_seconds(broker.process.pid)


class Feed(threading.Thread):
    """Writes records at a constant rate, each with its time."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        super().__init__(daemon=True)
        self._servers = bootstrap
        self._topic = TopicPartition(topic, 0)
        self.ended = threading.Event()

    def run(self) -> None:
        every = PER_BATCH / RATE
        with ClusterClient(self._servers) as cluster:
            producer = BatchProducer(cluster, idempotent=False)
            due = time.monotonic()
            while not self.ended.wait(max(0.0, due - time.monotonic())):
                due += every
                batch, now_ms = BatchBuilder(), int(time.time() * 1000)
                for _ in range(PER_BATCH):
                    batch.append(
                        now_ms, key=os.urandom(4).hex().encode(), value=b'{"note": "two coffees and a cake"}' * 3
                    )
                producer.send({self._topic: batch.build()})


def follow(spark: Any, broker: TailraceProcess, form: str, folder: Path, seconds: float) -> None:
    topic = f"live-{form}"
    with ClusterClient(broker.bootstrap) as cluster:
        create_topic(cluster, NewTopic(name=topic, partitions=1, replication_factor=1))
    feed, stopped = Feed(broker.bootstrap, topic), threading.Event()
    table = table_at(form, folder)
    with TopicSource(Place.parse(broker.bootstrap), [topic]) as source:
        follower = Follower(TableExport(spark, source, table, ExportSettings()), FollowPolicy(freshness_s=FRESHNESS_S))
        feed.start()
        timer = threading.Timer(seconds, stopped.set)
        timer.start()
        cpu = used(broker)
        found = follower.run(stopped)
        cpu = used(broker) - cpu
    feed.ended.set()
    feed.join()
    ages = sorted(freshness(form, folder, topic))
    p50, p99 = (ages[int(len(ages) * share)] for share in (0.50, 0.99))
    sizes = file_sizes(form, folder)
    large = [size for size in sizes if size >= LARGE_FILE]
    print(
        f"  {form:8} {found.records:,} records in {found.commits} commits   "
        f"freshness p50 {p50:.1f} s   p99 {p99:.1f} s   CPU with the feed {cpu / seconds:.2f} s/s   "
        f"{len(sizes)} files, {sum(sizes) / 2**20:.0f} MiB, {len(large)} of at least 64 MiB "
        f"with {sum(large) / sum(sizes):.0%} of the bytes",
        flush=True,
    )


def freshness(form: str, folder: Path, topic: str) -> Iterator[float]:
    """Yield the ages of records when they were committed, of one in each batch of the producer."""
    commits = sorted(commits_of(form, folder, topic))
    rows = rows_of(form, folder)
    ends = [end for end, _ in commits]
    rows = rows.take(list(range(0, rows.num_rows, PER_BATCH)))
    for offset, timestamp in zip(rows.column("offset").to_pylist(), rows.column("timestamp").to_pylist(), strict=True):
        committed_ms = commits[bisect.bisect_right(ends, offset)][1]
        yield committed_ms / 1000 - timestamp.timestamp()


def commits_of(form: str, folder: Path, topic: str) -> Iterator[tuple[int, int]]:
    """Yield end offset and time in ms of each commit that added records."""
    name = f"tailrace.offsets.{topic}"
    if form == "delta":
        import deltalake

        for one in deltalake.DeltaTable(folder).history():
            if "tailrace" in one:
                yield _end(json.loads(one["tailrace"])[name]), one["timestamp"]
        return
    for snapshot in loaded(folder).metadata.snapshots:
        if snapshot.summary.operation.value == "append":
            yield _end(snapshot.summary.additional_properties[name]), snapshot.timestamp_ms


def _end(text: str) -> int:
    return int(json.loads(text)["ends"]["0"])


def loaded(folder: Path) -> Any:
    from pyiceberg.catalog import load_catalog

    place = {"type": "sql", "uri": f"sqlite:///{folder}/catalog.db", "warehouse": f"file://{folder}"}
    return load_catalog("bench", **place).load_table(NAME)


def rows_of(form: str, folder: Path) -> Any:
    if form == "iceberg":
        return loaded(folder).scan(selected_fields=("offset", "timestamp")).to_arrow()
    import deltalake
    import pyarrow as pa

    query = deltalake.QueryBuilder().register("t", deltalake.DeltaTable(folder))
    return pa.table(query.execute("select offset, timestamp from t").read_all())


def file_sizes(form: str, folder: Path) -> list[int]:
    if form == "iceberg":
        return [task.file.file_size_in_bytes for task in loaded(folder).scan().plan_files()]
    import deltalake
    import pyarrow as pa

    actions = deltalake.DeltaTable(folder).get_add_actions(flatten=True)
    sizes: list[int] = pa.table(actions).column("size_bytes").to_pylist()
    return sizes


def main(arguments: list[str]) -> None:
    batches = int(float(arguments[0] if arguments else "2") * 1_000_000 / PER_BATCH)
    seconds = float(arguments[1]) if len(arguments) > 1 else 60.0
    with tempfile.TemporaryDirectory() as directory:
        scratch = Path(directory)
        with TailraceProcess(scratch / "data") as broker:
            if batches:
                with ClusterClient(broker.bootstrap) as cluster:
                    topic = NewTopic(name="orders", partitions=1, replication_factor=1, config={"retention.ms": "-1"})
                    create_topic(cluster, topic)
                fill(broker.bootstrap, batches)
            spark = spark_session(with_connector=bool(batches), is_hasty=False)
            try:
                if batches:
                    compare(spark, broker, scratch, batches * PER_BATCH)
                print(f"following {RATE:,} records a second for {seconds:g} s, due after {FRESHNESS_S:g} s", flush=True)
                for form in arguments[2:] or FORMS:
                    follow(spark, broker, form, scratch / f"live-{form}", seconds)
            finally:
                stop_session()


if __name__ == "__main__":
    main(sys.argv[1:])
