"""Metadata of all topics: encoded once, and never another answer than without that."""

from __future__ import annotations

from tailrace.protocol import messages as m
from tailrace.protocol.message import Message
from tests.support.memory_node import NOW_MS, Client, start


def ask(client: Client, version: int) -> Message:
    return client.ask(m.MetadataRequest(topics=[] if version == 0 else None), version)


def create(client: Client, name: str, partitions: int = 3) -> None:
    topic = m.CreateTopicsRequest.CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)
    assert client.ask(m.CreateTopicsRequest(topics=[topic], timeout_ms=1000), 5).topics[0].error_code == 0


def named(client: Client, version: int) -> Message:
    """Return the same response, built topic by topic."""
    names = sorted(client.broker.services.controller.image.topics)
    wanted = [m.MetadataRequest.MetadataRequestTopic(name=name) for name in names]
    return client.ask(m.MetadataRequest(topics=wanted), version)


def same(all_topics: Message, one_by_one: Message) -> bool:
    for answer in (all_topics, one_by_one):
        answer.topics.sort(key=lambda topic: topic.name)
    return all_topics == one_by_one


def test_metadata_of_all_topics_equals_that_of_topics_requested_by_name() -> None:
    client = Client(start())
    for version in range(1, 14):
        assert same(ask(client, version), m.MetadataResponse(**_frame(client, version)))
    create(client, "orders")
    create(client, "payments", 200)
    for version in range(1, 14):
        for _ in range(2):
            assert same(ask(client, version), named(client, version)), version
    assert len(ask(client, 0).topics) == 2


def _frame(client: Client, version: int) -> dict[str, object]:
    """Return the fields of a response without topics."""
    answer = ask(client, version)
    assert answer.topics == []
    fields = ("brokers", "cluster_id", "controller_id", "cluster_authorized_operations", "error_code")
    return {name: getattr(answer, name) for name in fields}


def test_only_changed_topics_are_encoded_again() -> None:
    client = Client(start())
    encoded = client.broker.services.encoded_topics
    for name in ("a", "b", "c"):
        create(client, name)
    ask(client, 12)
    assert encoded.encoded == 3
    ask(client, 12)
    assert encoded.encoded == 3
    more = m.CreatePartitionsRequest.CreatePartitionsTopic(name="b", count=5, assignments=None)
    client.ask(m.CreatePartitionsRequest(topics=[more], timeout_ms=1000), 1)
    assert len({topic.name: topic for topic in ask(client, 12).topics}["b"].partitions) == 5
    assert encoded.encoded == 4
    client.ask(m.DeleteTopicsRequest(topic_names=["a"], timeout_ms=1000), 5)
    assert sorted(topic.name for topic in ask(client, 12).topics) == ["b", "c"]
    assert encoded.encoded == 4
    ask(client, 13)
    assert encoded.encoded == 6, "another version has other bytes"
    client.broker.services.local_controller.unregister_broker(
        client.broker.services.controller.node_id, NOW_MS
    )  # it registers again at once
    assert same(ask(client, 12), named(client, 12))
    assert encoded.encoded == 8, "both are on a broker that has changed"


def test_error_codes_of_cached_topics_are_counted() -> None:
    client = Client(start())
    create(client, "orders", 7)
    codes = client.broker.services.replies.errors_of(3)
    for _ in range(2):
        before = codes[0]
        ask(client, 12)
        assert codes[0] - before == 1 + 1 + 7  # the answer, the topic, its partitions


def test_authorized_operations_are_not_cached() -> None:
    client = Client(start())
    create(client, "orders")
    request = m.MetadataRequest(topics=None, include_topic_authorized_operations=True)
    (topic,) = client.ask(request, 12).topics
    assert topic.topic_authorized_operations > 0
    assert ask(client, 12).topics[0].topic_authorized_operations < 0
