"""Results into a topic: each micro-batch's rows of key and value, in one request a partition.

The producer is idempotent, so that a request sent again is written once. A micro-batch that Spark runs again after a
crash is written again.
"""

from __future__ import annotations

import time

from pyspark.sql import DataFrame
from pyspark.sql.streaming import DataStreamWriter

from tailrace.client.cluster import ClusterClient
from tailrace.client.partitioner import partition_of_key
from tailrace.client.producer import BatchProducer
from tailrace.model.ids import TopicPartition
from tailrace.records.builder import BatchBuilder


def write_to_topic(results: DataFrame, bootstrap: str, topic: str) -> DataStreamWriter:
    def write(batch: DataFrame, batch_id: int) -> None:
        with ClusterClient(bootstrap) as cluster:
            count = len(cluster.topic(topic).partitions)
            batches: dict[TopicPartition, BatchBuilder] = {}
            for row in batch.collect():
                partition = TopicPartition(topic, partition_of_key(bytes(row.key), count))
                builder = batches.setdefault(partition, BatchBuilder())
                builder.append(time.time_ns() // 1_000_000, key=bytes(row.key), value=bytes(row.value))
            if batches:
                BatchProducer(cluster).send({partition: one.build() for partition, one in batches.items()})

    return results.writeStream.foreachBatch(write)
