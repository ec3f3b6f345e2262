"""LayeredMap: as a dict would be, and a change of an image costs what has changed."""

from __future__ import annotations

import random
import tracemalloc
from functools import cache

from tailrace.metadata.image.delta import MetadataDelta
from tailrace.metadata.image.image import MetadataImage
from tailrace.metadata.image.layered_map import FEW, LayeredMap, changed
from tailrace.protocol import messages as m

TOPICS = 8_000


def test_a_layered_map_equals_a_dict_with_the_same_changes() -> None:
    dice = random.Random(7)
    model = {key: key * 10 for key in range(FEW + 100)}
    mapping = changed(model, {})
    for _ in range(60):
        changes = {
            dice.randrange(FEW + 200): dice.choice((None, dice.randrange(1000))) for _ in range(dice.randrange(9))
        }
        before, kept = mapping, dict(mapping)
        mapping = changed(mapping, changes)
        assert dict(before) == kept, "a change has changed the mapping before it"
        model = {key: value for key, value in {**kept, **changes}.items() if value is not None}
        assert mapping == model
        assert len(mapping) == len(model)
        assert sorted(mapping) == sorted(model)
        assert all((key in mapping, mapping.get(key)) == (key in model, model.get(key)) for key in range(FEW + 200))


def test_iteration_is_in_insertion_order() -> None:
    mapping = changed(dict.fromkeys(range(FEW + 1), 1), {3: 2, 9_000: 1, 8_000: 1, 7: None})
    assert isinstance(mapping, LayeredMap)
    assert list(mapping) == [*(key for key in range(FEW + 1) if key != 7), 9_000, 8_000]


@cache
def _image() -> MetadataImage:
    delta = MetadataDelta()
    for number in range(TOPICS):
        topic_id = number.to_bytes(16, "big")
        delta.replay(m.TopicRecord(name=f"topic-{number}", topic_id=topic_id))
        delta.replay(m.PartitionRecord(partition_id=0, topic_id=topic_id, replicas=[1, 2], isr=[1, 2], leader=1))
    return delta.apply(offset=0, epoch=0, timestamp_ms=0)


def _changed(image: MetadataImage, number: int) -> MetadataImage:
    delta = MetadataDelta(image)
    delta.replay(m.PartitionChangeRecord(topic_id=number.to_bytes(16, "big"), partition_id=0, leader=2))
    return delta.apply(offset=image.offset + 1, epoch=0, timestamp_ms=0)


def test_a_delta_touches_only_what_has_changed() -> None:
    image = _image()
    _changed(image, 1)
    tracemalloc.start()
    after = _changed(image, 7)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 100_000, f"{peak} bytes for one partition; copies of all topics are six times that"
    others = [name for name, topic in after.topics.items() if topic is not image.topics[name]]
    assert others == ["topic-7"]
    assert after.topics["topic-7"] is after.topics_by_id[(7).to_bytes(16, "big")]
    assert (image.topics["topic-7"].partitions[0].leader, after.topics["topic-7"].partitions[0].leader) == (1, 2)


def test_the_large_dict_is_copied_rarely() -> None:
    image, copies = _image(), 0
    for number in range(1_000):
        image = _changed(image, number)
        copies += not isinstance(image.topics, LayeredMap)
    assert copies <= 1_000 / TOPICS**0.5
    assert all(image.topics[f"topic-{number}"].partitions[0].leader == 2 for number in range(1_000))
