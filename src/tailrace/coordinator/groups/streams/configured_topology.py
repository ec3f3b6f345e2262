"""ConfiguredTopology: a topology configured with the existing topics: number of tasks, missing internal topics.

A repartition topic has the partition count that the application requests, or else that of the largest input of the
subtopologies that write to it. Copartitioned topics have equal counts. A changelog topic has one partition per task of
its subtopology. The broker creates missing internal topics; it does not create source topics.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from heapq import heappop, heappush

from tailrace.coordinator.groups.streams.streams_topology import StreamsTopology, Subtopology, TopicInfo, source_topics
from tailrace.metadata.image.image import MetadataImage
from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.model.java.java_order import hash_map_order

_SHOWN_TOPICS_MAX = 3


class Status(IntEnum):
    """Codes of the statuses in a heartbeat response."""

    STALE_TOPOLOGY = 0
    MISSING_SOURCE_TOPICS = 1
    INCORRECTLY_PARTITIONED_TOPICS = 2
    MISSING_INTERNAL_TOPICS = 3
    SHUTDOWN_APPLICATION = 4
    ASSIGNMENT_DELAYED = 5


class TopicProblem(Exception):
    """The existing topics do not fit the topology."""

    def __init__(self, status: Status, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


@dataclass(frozen=True, slots=True)
class InternalTopic:
    name: str
    partitions: int
    replication_factor: int  # 0: the broker's default
    configs: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class ConfiguredSubtopology:
    task_count: int
    source_topics: frozenset[str]
    repartition_sink_topics: frozenset[str]
    repartition_source_topics: Mapping[str, InternalTopic]
    changelog_topics: Mapping[str, InternalTopic]


@dataclass(frozen=True, slots=True)
class ConfiguredTopology:
    epoch: int
    subtopologies: Mapping[str, ConfiguredSubtopology] | None  # sorted by name; None if the topics do not fit
    topics_to_create: Mapping[str, InternalTopic] = field(default_factory=dict)
    problem: TopicProblem | None = None

    @property
    def is_ready(self) -> bool:
        return self.problem is None


def configure(topology: StreamsTopology, image: MetadataImage) -> ConfiguredTopology:
    try:
        _check_sources(topology, image)
        counts = _PartitionCounts(topology, image).decide()
        subtopologies = {
            name: _configured(topology.subtopologies[name], counts, image) for name in sorted(topology.subtopologies)
        }
        missing = _missing(subtopologies.values(), topology, image)
    except TopicProblem as why:
        return ConfiguredTopology(topology.epoch, None, problem=why)
    problem = None
    if missing:
        problem = TopicProblem(Status.MISSING_INTERNAL_TOPICS, f"Internal topics are missing: {_summary(missing)}")
    return ConfiguredTopology(topology.epoch, subtopologies, missing, problem)


def _check_sources(topology: StreamsTopology, image: MetadataImage) -> None:
    missing = {topic for one in topology.subtopologies.values() for topic in one.source_topics} - image.topics.keys()
    if missing:
        raise TopicProblem(Status.MISSING_SOURCE_TOPICS, f"Source topics {_summary(sorted(missing))} are missing.")


def _summary(topics: Iterable[str]) -> str:
    names = list(topics)
    more = len(names) - _SHOWN_TOPICS_MAX
    return ", ".join(names[:_SHOWN_TOPICS_MAX]) + (f" and {more} additional topics" if more > 0 else "")


def _invalid(message: str) -> KafkaError:
    return KafkaError(ErrorCode.STREAMS_INVALID_TOPOLOGY, message)


class _PartitionCounts:
    """The partition counts of the application's internal topics, existing or to be created."""

    def __init__(self, topology: StreamsTopology, image: MetadataImage) -> None:
        self._subtopologies = list(topology.subtopologies.values())
        self._image = image
        self._decided: dict[str, int] = {}
        infos = [info for one in self._subtopologies for info in one.repartition_source_topics]
        self._fixed = {info.name for info in infos if info.partitions}
        self._flexible = {info.name for info in infos if not info.partitions}
        self._count_of_fixed: int | None = None

    def decide(self) -> Mapping[str, int]:
        self._decided.update(self._of_repartition_topics())
        for one in self._subtopologies:
            for group in one.copartition_groups:
                try:
                    topics = {one.source_topics[index] for index in group.source_topics}
                    topics |= {one.repartition_source_topics[index].name for index in group.repartition_source_topics}
                except IndexError:
                    raise KafkaError(
                        ErrorCode.UNKNOWN_SERVER_ERROR
                    ) from None  # a copartition group with unknown topics
                self._decided.update(self._copartitioned(topics))
        changelogs = {}
        for one in self._subtopologies:
            counts = [self._count(topic) for topic in source_topics(one)]
            if not counts:
                raise _invalid(f"No source topics found for subtopology {one.subtopology_id}")
            changelogs.update({info.name: max(counts) for info in one.state_changelog_topics})
        self._decided.update(changelogs)
        return self._decided

    def _partition_count(self, topic: str) -> int | None:
        found = self._image.topics.get(topic)
        return self._decided.get(topic) if found is None else len(found.partitions)

    def _count(self, topic: str) -> int:
        count = self._partition_count(topic)
        if count is None:
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
        return count

    def _of_repartition_topics(self) -> dict[str, int]:
        counts = {
            info.name: info.partitions
            for one in self._subtopologies
            for info in one.repartition_source_topics
            if info.partitions
        }
        self._add_sinks(counts)
        if any(sink not in counts for one in self._subtopologies for sink in one.repartition_sink_topics):
            raise _invalid(
                "Failed to compute number of partitions for all repartition topics. There may be loops in the "
                "topology that cannot be resolved."
            )
        if any(info.name not in counts for one in self._subtopologies for info in one.repartition_source_topics):
            raise _invalid(
                "Failed to compute number of partitions for all repartition topics, because a repartition source topic "
                "is never used as a sink topic."
            )
        return counts

    def _add_sinks(self, counts: dict[str, int]) -> None:
        """Add the counts of sink topics: the largest input of the subtopology that is known when its turn comes.

        As in Kafka, the subtopologies take turns in their order, in rounds, until nothing new becomes known. Only
        those turns are taken in which a count becomes known, so the work does not grow with the number of rounds.
        """
        readers: dict[str, list[int]] = {}
        turns: list[tuple[int, int]] = []  # a heap of (round, subtopology)
        has_turn = set()
        for number, one in enumerate(self._subtopologies):
            for info in one.repartition_source_topics:
                readers.setdefault(info.name, []).append(number)
            if self._known_inputs(one, counts):
                turns.append((0, number))
                has_turn.add(number)
        while turns:
            round_, number = heappop(turns)
            one = self._subtopologies[number]
            count = max(self._known_inputs(one, counts))
            for sink in one.repartition_sink_topics:
                if sink in counts:
                    continue
                counts[sink] = count
                for reader in readers.get(sink, ()):
                    if reader not in has_turn:
                        has_turn.add(reader)
                        heappush(turns, (round_ if reader > number else round_ + 1, reader))

    def _known_inputs(self, one: Subtopology, counts: Mapping[str, int]) -> list[int]:
        found = [counts.get(info.name) for info in one.repartition_source_topics]
        found += [self._partition_count(topic) for topic in one.source_topics]
        return [count for count in found if count is not None]

    def _copartitioned(self, topics: set[str]) -> dict[str, int]:
        """Return the partition count of copartitioned topics: that of the existing ones, or the largest of all."""
        if not topics:
            return {}
        own = {topic: self._count(topic) for topic in topics if topic in self._fixed or topic in self._flexible}
        others = {topic: self._count(topic) for topic in topics if topic not in own}
        if others:
            count = _same(others, others)
        elif self._fixed:
            if self._count_of_fixed is None:  # it never changes
                self._count_of_fixed = _same({topic: self._count(topic) for topic in self._fixed}, own)
            count = self._count_of_fixed
        else:
            count = max(own.values())
        for topic, has in own.items():
            if topic in self._fixed and has != count:
                raise TopicProblem(
                    Status.INCORRECTLY_PARTITIONED_TOPICS,
                    f"Number of partitions [{has}] of repartition topic [{topic}] doesn't match number of partitions "
                    f"[{count}] of the source topic.",
                )
        return dict.fromkeys(own, count)


def _same(counts: Mapping[str, int], shown: Mapping[str, int]) -> int:
    if len(set(counts.values())) > 1:
        listed = ", ".join(f"{topic}={shown[topic]}" for topic in sorted(shown))
        raise TopicProblem(
            Status.INCORRECTLY_PARTITIONED_TOPICS,
            f"Following topics do not have the same number of partitions: [{{{listed}}}]",
        )
    return next(iter(counts.values()))


def _configured(subtopology: Subtopology, counts: Mapping[str, int], image: MetadataImage) -> ConfiguredSubtopology:
    def internal(infos: Iterable[TopicInfo]) -> dict[str, InternalTopic]:
        return {info.name: _internal_topic(info, counts) for info in infos}

    def count(topic: str) -> int:
        found = image.topics.get(topic)
        return counts[topic] if found is None else len(found.partitions)

    return ConfiguredSubtopology(
        task_count=max(count(topic) for topic in source_topics(subtopology)),
        source_topics=frozenset(subtopology.source_topics),
        repartition_sink_topics=frozenset(subtopology.repartition_sink_topics),
        repartition_source_topics=internal(subtopology.repartition_source_topics),
        changelog_topics=internal(subtopology.state_changelog_topics),
    )


def _internal_topic(info: TopicInfo, counts: Mapping[str, int]) -> InternalTopic:
    partitions = info.partitions or counts[info.name]
    if partitions < 1:
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
    configs = {config.key: config.value for config in info.topic_configs}
    return InternalTopic(info.name, partitions, info.replication_factor, configs)


def _missing(
    subtopologies: Iterable[ConfiguredSubtopology], topology: StreamsTopology, image: MetadataImage
) -> dict[str, InternalTopic]:
    wanted: dict[str, InternalTopic] = {}
    for one in subtopologies:
        wanted.update(one.repartition_source_topics)
        wanted.update(one.changelog_topics)
    order = hash_map_order(wanted)  # Kafka's order in the message
    for topic in sorted(topology.required_topics):
        found = image.topics.get(topic)
        expected = None if found is None else wanted.pop(topic, None)
        if found is not None and expected is not None and len(found.partitions) != expected.partitions:
            raise TopicProblem(
                Status.INCORRECTLY_PARTITIONED_TOPICS,
                f"Existing topic {topic} has different number of partitions: expected {expected.partitions}, found "
                f"{len(found.partitions)}",
            )
    return {topic: wanted[topic] for topic in order if topic in wanted}
