"""The partition counts of a topology: the result of Kafka's rounds, without the work of rounds."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from tailrace.coordinator.groups.streams.configured_topology import _PartitionCounts, configure
from tailrace.coordinator.groups.streams.streams_topology import StreamsTopology, Subtopology, TopicInfo
from tailrace.model.errors import KafkaError
from tailrace.protocol.messages import StreamsGroupTopologyValue
from tests.unit.metadata.cluster import Cluster


class Counted(list[Any]):
    """A list that counts how many of its items were visited."""

    visits = 0

    def __iter__(self) -> Any:
        for one in super().__iter__():
            Counted.visits += 1
            yield one


def cluster() -> Cluster:
    made = Cluster()
    made.add_topic("one", [1])
    made.add_topic("three", [1], [2], [3])
    return made


def topology(subtopologies: list[Subtopology]) -> StreamsTopology:
    return StreamsTopology(StreamsGroupTopologyValue(epoch=0, subtopologies=subtopologies))


def by_rounds(subtopologies: list[Subtopology], sizes: dict[str, int]) -> dict[str, int] | None:
    """Return the counts as Kafka computes them: round by round. None: not all can be computed."""
    counts = {
        info.name: info.partitions for one in subtopologies for info in one.repartition_source_topics if info.partitions
    }
    while True:
        left = progress = False
        for one in subtopologies:
            for sink in one.repartition_sink_topics:
                found = [counts.get(info.name) for info in one.repartition_source_topics]
                known = [count for count in (*found, *map(sizes.get, one.source_topics)) if count is not None]
                if sink not in counts and known:
                    counts[sink] = max(known)
                    progress = True
                left |= sink not in counts
        if not left:
            break
        if not progress:
            return None
    is_known = all(info.name in counts for one in subtopologies for info in one.repartition_source_topics)
    return counts if is_known else None


def test_the_counts_are_those_of_rounds() -> None:
    outcomes = set()
    for seed in range(3_000):
        dice = Random(seed)
        names = [f"r{number}" for number in range(dice.randrange(1, 7))]
        subtopologies = [
            Subtopology(
                subtopology_id=str(number),
                source_topics=dice.choices(["one", "three", "missing"], [2, 2, 1], k=dice.choice((0, 0, 1, 2))),
                repartition_sink_topics=dice.sample(names, dice.randrange(min(3, len(names)) + 1)),
                repartition_source_topics=[
                    TopicInfo(name=name, partitions=dice.choice((0, 0, 0, 0, 5)))
                    for name in dice.sample(names, dice.randrange(min(3, len(names)) + 1))
                ],
            )
            for number in range(dice.randrange(1, 8))
        ]
        expected = by_rounds(subtopologies, {"one": 1, "three": 3})
        counting = _PartitionCounts(topology(subtopologies), cluster().image)
        outcomes.add(expected is None)
        if expected is None:
            with pytest.raises(KafkaError):
                counting._of_repartition_topics()
        else:
            assert counting._of_repartition_topics() == expected, seed
    assert outcomes == {True, False}


def visits_of(subtopologies: list[Subtopology]) -> int:
    for one in subtopologies:
        for name in ("source_topics", "repartition_sink_topics", "repartition_source_topics", "copartition_groups"):
            setattr(one, name, Counted(getattr(one, name)))
    Counted.visits = 0
    assert configure(topology(subtopologies), cluster().image).problem is not None, "topics are missing"
    return Counted.visits


def test_a_chain_in_the_wrong_order_does_not_take_a_round_for_each_link() -> None:
    links = [
        Subtopology(
            subtopology_id=str(number),
            source_topics=["three"] if number == 0 else [],
            repartition_source_topics=[TopicInfo(name=f"r{number}")] if number else [],
            repartition_sink_topics=[f"r{number + 1}"],
        )
        for number in reversed(range(500))
    ]
    last = Subtopology(subtopology_id="last", repartition_source_topics=[TopicInfo(name="r500")])
    assert visits_of([last, *links]) < 20 * 500


def test_many_sinks_of_many_sources_are_not_multiplied() -> None:
    wide = Subtopology(
        subtopology_id="0",
        source_topics=["three"] * 500,
        repartition_sink_topics=[f"r{number}" for number in range(500)],
    )
    reader = Subtopology(
        subtopology_id="1", repartition_source_topics=[TopicInfo(name=f"r{number}") for number in range(500)]
    )
    assert visits_of([wide, reader]) < 40 * 500
