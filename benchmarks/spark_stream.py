"""How long a record takes through a streaming query: from its Produce to where a reader of the result sees it.

    python -m benchmarks.spark_stream [seconds a way]

A query copies one topic into another, micro-batch after micro-batch, as fast as they go. Records with the time of their
sending in them go into the first, twenty a second; a reader of the second (read_committed) notes how old each is when
it arrives. This source and sink beside Spark's own connector, in one session, against one broker in this process; the
first ten seconds of each do not count. Latency is wall time: on a busy machine the figures are worth little.
"""

from __future__ import annotations

import os
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import tailrace
from benchmarks.spark_read import cpu_of_spark
from tailrace.client.batches import FetchOptions, fetch
from tailrace.client.cluster import ClusterClient
from tailrace.client.isolation import IsolationLevel
from tailrace.client.producer import BatchProducer
from tailrace.model.ids import TopicPartition
from tailrace.records.builder import BatchBuilder
from tailrace.records.record import iter_records
from tests.support.spark_session import spark_session, stop_session

EVERY_S = 0.05
WARM_UP_S = 10.0
START_TIMEOUT_S = 180.0
WAYS = {
    "tailrace, exactly once": ("tailrace", "tailrace", {}),
    "tailrace, at least once": ("tailrace", "tailrace", {"deliveryGuarantee": "at-least-once"}),
    "tailrace's source, Spark's sink": ("tailrace", "kafka", {}),
    "Spark's connector": ("kafka", "kafka", {}),
}


class Feed(threading.Thread):
    """A record now and then, with the time in it."""

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
    """The age in seconds of each record of a topic when it arrives here, from the beginning on."""
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
            yield -1.0  # nothing more for now


def measure(spark: Any, broker: tailrace.Broker, name: str, seconds: float, scratch: Path) -> None:
    source, sink, options = WAYS[name]
    number = list(WAYS).index(name)
    topics = [f"{way}-{number}" for way in ("in", "out")]
    for topic in topics:
        broker.create_topic(topic)
    servers = {"kafka.bootstrap.servers": broker.bootstrap}
    query = (
        spark.readStream.format(source)
        .options(**servers, subscribe=topics[0], startingOffsets="earliest")
        .load()
        .select("key", "value")
        .writeStream.format(sink)
        .options(**servers, **options, topic=topics[1], checkpointLocation=str(scratch / f"checkpoint-{number}"))
        .start()
    )
    feed = Feed(broker.bootstrap, topics[0])
    try:
        # What is sent while a query starts would be measured with its start.
        deadline = time.monotonic() + START_TIMEOUT_S
        while query.lastProgress is None and query.isActive and time.monotonic() < deadline:
            time.sleep(0.1)
        feed.start()
        found = collect(broker.bootstrap, topics[1], seconds)
    finally:
        feed.ended.set()
        if feed.is_alive():
            feed.join()
        query.stop()
    if found is None:
        print(f"  {name:34} nothing arrived within {START_TIMEOUT_S:g} s")
        return
    values, cpu_s = found
    p50, p99 = (values[int(len(values) * share)] * 1000 for share in (0.50, 0.99))
    print(f"  {name:34} p50 {p50:7.0f} ms   p99 {p99:7.0f} ms   CPU {cpu_s / seconds:5.2f} s/s   {len(values)} records")


def collect(bootstrap: str, topic: str, seconds: float) -> tuple[list[float], float] | None:
    began, first, cpu_s, values = time.monotonic(), None, 0.0, []
    for age in ages(bootstrap, topic):
        now = time.monotonic()
        if first is None:
            if age >= 0:
                first = now
            elif now - began > START_TIMEOUT_S:
                return None
        elif now - first < WARM_UP_S:
            cpu_s = cpu_of_spark()
        elif now - first > WARM_UP_S + seconds:
            break
        elif age >= 0:
            values.append(age)
    return sorted(values), cpu_of_spark() - cpu_s


def main() -> None:
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 30.0
    with tempfile.TemporaryDirectory(prefix="tailrace-stream-") as scratch, tailrace.Broker() as broker:
        spark = spark_session(with_connector=True, is_hasty=False)
        try:
            print(f"produce to result, {seconds:g} s each, load before {os.getloadavg()[0]:.1f}:")
            for name in WAYS:
                if "kafka" in WAYS[name][:2] and not spark.has_connector:
                    print(f"  {name:34} no jars: {spark.why_no_connector}")
                    continue
                measure(spark, broker, name, seconds, Path(scratch))
        finally:
            stop_session()


if __name__ == "__main__":
    main()
