"""leader.replication.throttled.rate: followers that are not in sync are held to it, where a topic names a partition."""

from __future__ import annotations

from typing import Any

from tailrace.protocol import messages as m
from tests.support.batches import batch
from tests.support.memory_node import NOW_MS, Client, start


def alter(client: Client, kind: int, name: str, key: str, value: str) -> None:
    request = m.IncrementalAlterConfigsRequest()
    change = request.AlterableConfig(name=key, value=value)
    request.resources = [request.AlterConfigsResource(resource_type=kind, resource_name=name, configs=[change])]
    assert client.ask(request, 1).responses[0].error_code == 0


def follow(client: Client, topic: str) -> bytes:
    """Fetch as broker 2, which is not a replica yet to the metadata but whose progress the leader keeps."""
    request: Any = m.FetchRequest(max_wait_ms=0, min_bytes=0, max_bytes=1_000_000)
    request.replica_state = request.ReplicaState(replica_id=2)
    wanted = request.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1_000_000)
    known = client.broker.services.controller.image.topics[topic]
    request.topics = [request.FetchTopic(topic=topic, topic_id=known.id, partitions=[wanted])]
    (answer,) = client.ask(request, 17).responses[0].partitions
    assert answer.error_code == 0
    return bytes(answer.records or b"")


def test_a_follower_out_of_sync_gets_at_most_the_throttled_rate() -> None:
    client = Client(start())
    broker = client.broker
    for name in ("named", "other"):
        topic = m.CreateTopicsRequest.CreatableTopic(name=name, num_partitions=1, replication_factor=1)
        assert client.ask(m.CreateTopicsRequest(topics=[topic]), 7).topics[0].error_code == 0
        partition = next(one for one in broker.services.partitions if one.key.topic == name)
        partition.append_as_leader(batch(bytes(50_000)), required_acks=1, now_ms=NOW_MS)
        assert partition.leader is not None
        partition.leader.assign((1, 2), {})
    alter(client, 2, "named", "leader.replication.throttled.replicas", "0:1")
    alter(client, 4, "1", "leader.replication.throttled.rate", "1000")
    assert len(follow(client, "named")) > 50_000  # nothing was sent before
    assert follow(client, "named") == b""
    assert len(follow(client, "other")) > 50_000
    client.now_ms += 60_000
    assert len(follow(client, "named")) > 50_000
    alter(client, 2, "named", "leader.replication.throttled.replicas", "0:7")  # on another leader
    assert len(follow(client, "named")) > 50_000
