"""The latency of a record through a streaming query: from its Produce until a reader of the result sees it.

    python -m benchmarks.spark_stream [seconds per variant] [words in the names of variants]

A query copies one topic into another, micro-batch after micro-batch, at full speed. Twenty records per second, each
with its sending time, go into the first topic. A reader of the second topic (read_committed) notes the age of each
record on arrival. Variants: this source and sink on Tailrace and on Apache Kafka, and Spark's own connector on both,
each broker a process, all in one session. The first twenty seconds of each variant do not count. Below each line are
the durations of the parts of a micro-batch, as Spark reports them (medians). Latency is wall time: on a busy machine
the figures are of little use.

"quick checkpoint" is the advice of docs/reference/spark.md: checkpoint files without checksums and without a second
file system API. In real-time mode Spark takes no source in Python.
"""

from __future__ import annotations

import os
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.kafka import cpu_seconds
from benchmarks.spark_read import cpu_of_spark
from tailrace.client.admin import NewTopic, create_topic
from tailrace.client.batches import FetchOptions, fetch
from tailrace.client.cluster.cluster_client import ClusterClient
from tailrace.client.producing.producer import BatchProducer
from tailrace.client.visible_batches import IsolationLevel
from tailrace.model.ids import TopicPartition
from tailrace.records.builder import BatchBuilder
from tailrace.records.record import iter_records
from tests.support.kafka_broker import KafkaBroker
from tests.support.kafka_install import kafka_installation
from tests.support.spark_session import spark_session, stop_session
from tests.support.tailrace_process import TailraceProcess

EVERY_S = 0.05
WARM_UP_S = 20.0
START_TIMEOUT_S = 180.0
MANAGER = "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
QUICK = {
    "spark.sql.streaming.checkpointFileManagerClass": MANAGER,
    "spark.sql.streaming.checkpoint.fileChecksum.enabled": "false",
}
PARTS = ("latestOffset", "walCommit", "queryPlanning", "addBatch", "commitOffsets", "triggerExecution")


@dataclass(frozen=True)
class Way:
    broker: str
    connector: str  # format of source and sink
    guarantee: str = ""
    is_quick: bool = False
    is_real_time: bool = False

    @property
    def name(self) -> str:
        connector = "Spark's connector" if self.connector == "kafka" else "tailrace"
        broker = "Tailrace" if self.broker == "tailrace" else "Apache Kafka"
        mode = ["quick checkpoint"] * self.is_quick + ["real-time mode"] * self.is_real_time
        return ", ".join(filter(None, (f"{connector} on {broker}", self.guarantee.replace("-", " "), *mode)))


WAYS = (
    Way("tailrace", "tailrace", "exactly-once"),
    Way("kafka", "kafka"),
    Way("kafka", "tailrace", "exactly-once"),
    Way("tailrace", "kafka"),
    Way("tailrace", "tailrace", "at-least-once"),
    Way("tailrace", "tailrace", "exactly-once", is_quick=True),
    Way("kafka", "kafka", is_quick=True),
    Way("tailrace", "tailrace", "at-least-once", is_quick=True),
    Way("kafka", "kafka", is_real_time=True),
    Way("tailrace", "kafka", is_real_time=True),
)


class Feed(threading.Thread):
    """Sends a record at intervals, with the time in it."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        super().__init__(daemon=True)
        self._servers = bootstrap
        self._topic = TopicPartition(topic, 0)
        self.ended = threading.Event()

    def run(self) -> None:
        with ClusterClient(self._servers) as cluster:
            producer = BatchProducer(cluster)
            while not self.ended.wait(EVERY_S):
                batch = BatchBuilder()
                batch.append(int(time.time() * 1000), key=b"k", value=b"%d" % time.time_ns())
                producer.send({self._topic: batch.build()})


def ages(bootstrap: str, topic: str) -> Iterator[float]:
    """Yield the age in seconds of each record of a topic when it arrives here, from the first record on."""
    partition, position = TopicPartition(topic, 0), 0
    options = FetchOptions(isolation=IsolationLevel.READ_COMMITTED, max_wait_ms=20)
    with ClusterClient(bootstrap) as cluster:
        while True:
            fetched = fetch(cluster, {partition: position}, options)[partition]
            now = time.time_ns()
            for batch in fetched.batches():
                for record in iter_records(batch):
                    if record.offset >= position:
                        yield (now - int(bytes(record.value or b"0"))) / 1e9
            position = fetched.next_position(position)
            yield -1.0  # no further record for now


def started(spark: Any, bootstrap: str, way: Way, topics: list[str], checkpoint: Path) -> Any:
    for name, value in QUICK.items():
        if way.is_quick:
            spark.conf.set(name, value)
        else:
            spark.conf.unset(name)
    servers = {"kafka.bootstrap.servers": bootstrap}
    guarantee = {"deliveryGuarantee": way.guarantee} if way.guarantee else {}
    writer = (
        spark.readStream.format(way.connector)
        .options(**servers, subscribe=topics[0], startingOffsets="earliest")
        .load()
        .select("key", "value")
        .writeStream.format(way.connector)
        .options(**servers, **guarantee, topic=topics[1], checkpointLocation=str(checkpoint))
    )
    return (writer.outputMode("update").trigger(realTime="5 minutes") if way.is_real_time else writer).start()


def measure(spark: Any, broker: Any, number: int, seconds: float, scratch: Path) -> None:
    way = WAYS[number]
    topics = [f"{end}-{number}" for end in ("in", "out")]
    with ClusterClient(broker.bootstrap) as cluster:
        for topic in topics:
            create_topic(cluster, NewTopic(name=topic, partitions=1, replication_factor=1))
    query = started(spark, broker.bootstrap, way, topics, scratch / f"checkpoint-{number}")
    feed = Feed(broker.bootstrap, topics[0])
    try:
        # Records sent while a query starts would be measured with its start.
        deadline = time.monotonic() + START_TIMEOUT_S
        while not way.is_real_time and query.lastProgress is None and query.isActive and time.monotonic() < deadline:
            time.sleep(0.1)
        feed.start()
        found = collect(query, broker.bootstrap, topics[1], seconds)
        reports = [one["durationMs"] for one in query.recentProgress if one["numInputRows"]]
    finally:
        feed.ended.set()
        if feed.is_alive():
            feed.join()
        query.stop()
    if found is None:
        why = query.exception()
        print(f"  {way.name:58} nothing arrived" + (f": {str(why).splitlines()[0]}" if why else ""), flush=True)
        return
    values, cpu_s = found
    p50, p99 = (values[int(len(values) * share)] * 1000 for share in (0.50, 0.99))
    print(f"  {way.name:58} p50 {p50:6.0f} ms   p99 {p99:6.0f} ms   CPU {cpu_s / seconds:4.2f} s/s", flush=True)
    if reports and not way.is_real_time:
        late = reports[len(reports) // 3 :]
        print("      " + ", ".join(f"{part} {median(one.get(part, 0) for one in late):.0f}" for part in PARTS))


def collect(query: Any, bootstrap: str, topic: str, seconds: float) -> tuple[list[float], float] | None:
    began, first, cpu_s, values = time.monotonic(), None, 0.0, []
    for age in ages(bootstrap, topic):
        now = time.monotonic()
        if first is None:
            if age >= 0:
                first = now
            elif now - began > START_TIMEOUT_S or not query.isActive:
                return None
        elif now - first < WARM_UP_S:
            cpu_s = cpu_of_query()
        elif now - first > WARM_UP_S + seconds:
            break
        elif age >= 0:
            values.append(age)
    return (sorted(values), cpu_of_query() - cpu_s) if values else None


_brokers: list[Any] = []


def cpu_of_query() -> float:
    return cpu_of_spark() - sum(cpu_seconds(broker.process.pid) for broker in _brokers)


def main(arguments: list[str]) -> None:
    seconds = float(arguments[0]) if arguments else 30.0
    with (
        tempfile.TemporaryDirectory(prefix="tailrace-stream-") as scratch,
        TailraceProcess(Path(scratch, "tailrace")) as ours,
        KafkaBroker(kafka_installation(), Path(scratch, "kafka")) as theirs,
    ):
        brokers = {"tailrace": ours, "kafka": theirs}
        _brokers[:] = brokers.values()
        spark = spark_session(with_connector=True, is_hasty=False)
        try:
            print(f"produce to result, {seconds:g} s each, load before {os.getloadavg()[0]:.1f}:", flush=True)
            for number, way in enumerate(WAYS):
                if not all(word in way.name for word in arguments[1:]):
                    continue
                if way.connector == "kafka" and not spark.has_connector:
                    print(f"  {way.name:58} no jars: {spark.why_no_connector}")
                    continue
                measure(spark, brokers[way.broker], number, seconds, Path(scratch))
        finally:
            stop_session()


if __name__ == "__main__":
    main(sys.argv[1:])
