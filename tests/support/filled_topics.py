"""Writes records to topics, for tests of the Spark source with a broker in this process."""

from __future__ import annotations

from collections.abc import Sequence

from tailrace.client.cluster.cluster_client import ClusterClient
from tailrace.client.producing.producer import BatchProducer
from tailrace.model.ids import TopicPartition
from tailrace.records.batch import Codec
from tests.support.batches import Value, batch


def put(
    bootstrap: str,
    topic: str,
    partition: int,
    values: Sequence[Value],
    *,
    per_batch: int = 5,
    timestamp: int = 1_700_000_000_000,
    codec: Codec = Codec.NONE,
) -> None:
    """Write the values in batches, with timestamps one millisecond apart."""
    with ClusterClient(bootstrap) as cluster:
        producer = BatchProducer(cluster)
        for start in range(0, len(values), per_batch):
            some = values[start : start + per_batch]
            times = [timestamp + start + number for number in range(len(some))]
            producer.send({TopicPartition(topic, partition): batch(*some, timestamp=times, codec=codec)})


def numbered(count: int, first: int = 0) -> list[Value]:
    return [(b"key %d" % number, b"value %d" % number) for number in range(first, first + count)]
