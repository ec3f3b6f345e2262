"""The times at which the controller elected leaders, from its own log, for both kinds of cluster."""

from __future__ import annotations

from typing import Any

from benchmarks.cluster.clusters import Cluster
from tailrace.metadata.storage.record_framing import records_in
from tailrace.records.batch import LOG_OVERHEAD, PREFIX, split_batches

_SAME_LEADER = -2


def leader_changes(cluster: Cluster, topic: str) -> list[float]:
    """Return the wall-clock times at which partition 0 got another living leader."""
    topic_id, times = b"", []
    for batch in split_batches(_log(cluster)):
        if batch.is_control:
            continue
        for record in records_in(batch):
            one: Any = record
            name = record.SCHEMA.name
            if name == "TopicRecord" and one.name == topic:
                topic_id = one.topic_id
            elif (
                name == "PartitionChangeRecord"
                and (one.topic_id, one.partition_id) == (topic_id, 0)
                and one.leader != _SAME_LEADER
                and one.leader >= 0
            ):
                times.append(batch.max_timestamp / 1_000)
    return times


def _log(cluster: Cluster) -> bytes:
    """Return the controller's log up to its last complete batch."""
    folder = cluster.controllers.nodes[0].data / "__cluster_metadata-0"
    data = b"".join(one.read_bytes() for one in sorted(folder.glob("*.log")))
    position = 0
    while len(data) - position >= LOG_OVERHEAD:
        size = PREFIX.unpack_from(data, position)[1]
        if size <= 0 or position + LOG_OVERHEAD + size > len(data):
            break
        position += LOG_OVERHEAD + size
    return data[:position]
