"""TableEnds: where a table ends, for each topic partition. The table itself stores it, in every commit.

An export reads the ends from the table, never from a checkpoint of its own. So a commit adds the files and moves the
ends in one atomic step. A round of an export is valid only if the table still ends where the round starts.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from tailrace.model.ids import Offset, TopicPartition
from tailrace.spark.jobs.errors import JobError
from tailrace.spark.source.transports.topic_identity import TopicIdentity, changed_text

PREFIX = "tailrace.offsets."  # followed by the name of the topic: a property of an Iceberg snapshot
COMMIT = "tailrace.commit"  # the id of the round that made a commit


class ConcurrentChange(JobError):
    """Another program has changed the table since the round or the merge was planned."""


class CommitUnknown(JobError):
    """It is unknown if a commit has succeeded, because its answer was lost."""


@dataclass(frozen=True, slots=True)
class TopicEnds:
    identity: TopicIdentity
    ends: dict[int, Offset]  # by partition: the next offset to add

    def to_json(self) -> str:
        return json.dumps(
            {
                "cluster_id": self.identity.cluster_id,
                "topic_id": self.identity.topic_id,
                "ends": {str(number): end for number, end in sorted(self.ends.items())},
            },
            separators=(",", ":"),
        )

    @classmethod
    def from_json(cls, text: str) -> TopicEnds:
        value = json.loads(text)
        ends = {int(number): int(end) for number, end in value["ends"].items()}
        return cls(TopicIdentity(value.get("topic_id", ""), value.get("cluster_id", "")), ends)


@dataclass(frozen=True, slots=True)
class TableEnds:
    topics: dict[str, TopicEnds] = field(default_factory=dict)

    def end_of(self, partition: TopicPartition) -> Offset | None:
        """Return the recorded end of a partition; None without one."""
        topic = self.topics.get(partition.topic)
        return None if topic is None else topic.ends.get(partition.partition)

    def next_offset(self, partition: TopicPartition) -> Offset | None:
        """Return the next offset to add; None if the table has no records of the topic.

        A partition that was added to a known topic starts at its offset 0.
        """
        topic = self.topics.get(partition.topic)
        return None if topic is None else topic.ends.get(partition.partition, 0)

    def check(self, table: str, identities: Mapping[str, TopicIdentity]) -> None:
        """Raise JobError if a topic is not the one that the table has."""
        for topic, here in identities.items():
            there = self.topics.get(topic)
            text = None if there is None else changed_text(f"table {table}", topic, there.identity, here)
            if text is not None:
                raise JobError(f"{text}; export into another table")


@dataclass(frozen=True, slots=True)
class Round:
    """The offsets that one commit adds to a table, and the ids of their topics. All mappings have the same keys."""

    id: str
    expected: dict[TopicPartition, Offset | None]  # the recorded ends of the table before the commit
    starts: dict[TopicPartition, Offset]
    ends: dict[TopicPartition, Offset]
    identities: dict[str, TopicIdentity]

    @property
    def topics(self) -> list[str]:
        return sorted({partition.topic for partition in self.ends})

    def check_follows(self, table: str, there: TableEnds) -> None:
        """Raise ConcurrentChange if the table does not end where it ended when the round was planned."""
        there.check(table, self.identities)
        for partition, expected in self.expected.items():
            end = there.end_of(partition)
            if end != expected:
                raise ConcurrentChange(
                    f"another program changed table {table} during this round: for {partition} the table ended at "
                    f"offset {expected or 0}, and it now ends at {end or 0}"
                )

    def ends_after(self, there: TableEnds) -> TableEnds:
        """Return the ends of the topics of the round after its commit."""
        after = {}
        for topic in self.topics:
            known = there.topics.get(topic)
            ends = {} if known is None else dict(known.ends)
            ends |= {partition.partition: end for partition, end in self.ends.items() if partition.topic == topic}
            after[topic] = TopicEnds(self.identities.get(topic, TopicIdentity()), ends)
        return TableEnds(after)


def read_properties(commits: Iterable[Mapping[str, str]]) -> TableEnds:
    """Return the ends from properties of commits, the newest first. Each commit has complete ends of its topics."""
    topics: dict[str, TopicEnds] = {}
    for properties in commits:
        for name, text in properties.items():
            topic = name.removeprefix(PREFIX)
            if name.startswith(PREFIX) and topic not in topics:
                topics[topic] = TopicEnds.from_json(text)
    return TableEnds(topics)


def to_properties(ends: TableEnds) -> dict[str, str]:
    return {f"{PREFIX}{topic}": found.to_json() for topic, found in ends.topics.items()}
