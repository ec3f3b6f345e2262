"""Identifiers that every layer uses."""

from __future__ import annotations

import uuid

import pytest

from tailrace.model.ids import TopicId, TopicPartition


def test_a_partition_is_written_like_its_folder() -> None:
    assert str(TopicPartition("my-topic", 12)) == "my-topic-12"


def test_partitions_are_ordered_by_topic_then_number() -> None:
    partitions = [TopicPartition("b", 0), TopicPartition("a", 10), TopicPartition("a", 2)]
    assert sorted(partitions) == [TopicPartition("a", 2), TopicPartition("a", 10), TopicPartition("b", 0)]


def test_a_topic_id_is_22_characters_of_url_safe_base64() -> None:
    topic_id = TopicId(uuid.UUID("fbf8ffc0-0000-4000-8000-000000000001"))
    assert str(topic_id) == "-_j_wAAAQACAAAAAAAAAAQ"
    assert TopicId.parse("-_j_wAAAQACAAAAAAAAAAQ") == topic_id


@pytest.mark.parametrize("text", ["", "short", "A" * 21, "A" * 23, "AAAAAAAAQACAAAAAAAAAAQ==AAAA", "!" * 22])
def test_an_invalid_topic_id_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a Kafka uuid"):
        TopicId.parse(text)
