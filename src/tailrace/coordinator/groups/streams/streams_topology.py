"""StreamsTopology: the subtopologies of a Kafka Streams application and their topics, as its first member reports."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property

from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.protocol.messages import StreamsGroupHeartbeatRequest, StreamsGroupTopologyValue

Subtopology = StreamsGroupTopologyValue.Subtopology
TopicInfo = StreamsGroupTopologyValue.TopicInfo


class StreamsTopology:
    def __init__(self, value: StreamsGroupTopologyValue) -> None:
        self.value = value
        self.epoch = value.epoch
        self.subtopologies: Mapping[str, Subtopology] = {one.subtopology_id: one for one in value.subtopologies}
        if value.epoch < 0 or len(self.subtopologies) != len(value.subtopologies):
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)  # a negative epoch, or a name twice

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, StreamsTopology):
            return NotImplemented
        return self.epoch == other.epoch and self.subtopologies == other.subtopologies

    __hash__ = None  # type: ignore[assignment]

    @cached_property
    def subtopology_of_source(self) -> Mapping[str, str]:
        """The subtopology that reads each source topic or repartition topic."""
        found = {}
        for one in self.subtopologies.values():
            for topic in source_topics(one):
                found[topic] = one.subtopology_id
        return found

    @cached_property
    def required_topics(self) -> frozenset[str]:
        return frozenset(
            name
            for one in self.subtopologies.values()
            for name in (*source_topics(one), *(info.name for info in one.state_changelog_topics))
        )


def source_topics(subtopology: Subtopology) -> Iterator[str]:
    yield from subtopology.source_topics
    for info in subtopology.repartition_source_topics:
        yield info.name


def stored_topology(reported: StreamsGroupHeartbeatRequest.Topology) -> StreamsGroupTopologyValue:
    """Return the topology of a heartbeat as it is stored in the log."""
    return StreamsGroupTopologyValue(
        epoch=reported.epoch,
        subtopologies=[
            Subtopology(
                subtopology_id=one.subtopology_id,
                source_topics=list(one.source_topics),
                source_topic_regex=list(one.source_topic_regex),
                repartition_sink_topics=list(one.repartition_sink_topics),
                repartition_source_topics=[_info(info) for info in one.repartition_source_topics],
                state_changelog_topics=[_info(info) for info in one.state_changelog_topics],
                copartition_groups=[
                    StreamsGroupTopologyValue.CopartitionGroup(
                        source_topics=list(group.source_topics),
                        source_topic_regex=list(group.source_topic_regex),
                        repartition_source_topics=list(group.repartition_source_topics),
                    )
                    for group in one.copartition_groups
                ],
            )
            for one in reported.subtopologies
        ],
    )


def _info(reported: StreamsGroupHeartbeatRequest.TopicInfo) -> TopicInfo:
    return TopicInfo(
        name=reported.name,
        partitions=reported.partitions,
        replication_factor=reported.replication_factor,
        topic_configs=[
            StreamsGroupTopologyValue.TopicConfig(key=config.key, value=config.value)
            for config in reported.topic_configs
        ],
    )
