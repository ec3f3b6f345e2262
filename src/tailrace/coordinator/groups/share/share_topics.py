"""ShareTopics: the partitions of a share group whose state is initializing, initialized or deleting.

    subscribed ──► initializing ──(the share coordinator has it)──► initialized ──► assigned to members
                        │ failed                                         │ offsets or group deleted
                        ▼                                                ▼
                    removed, retried                                  deleting ──► removed

A ShareTopics is immutable. Each step makes another object, stored as a ShareGroupStatePartitionMetadata record.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple, TypeAlias

from tailrace.metadata.image.image import MetadataImage

_UNKNOWN = "<UNKNOWN>"  # Kafka's name for a deleted topic

Partitions: TypeAlias = Mapping[bytes, frozenset[int]]  # by topic id


class TopicProgress(NamedTuple):
    name: str
    partitions: frozenset[int]


Progress: TypeAlias = Mapping[bytes, TopicProgress]


@dataclass(frozen=True, slots=True)
class ShareTopics:
    initializing: Progress = field(default_factory=dict)
    initialized: Progress = field(default_factory=dict)
    deleting: frozenset[bytes] = frozenset()
    since_ms: int = 0  # when this was written or loaded

    def missing(self, names: Iterable[str], image: MetadataImage, now_ms: int, retry_ms: int) -> Progress:
        """Return the partitions of these topics to initialize. An initialization is retried after `retry_ms`."""
        known = self.initialized
        if now_ms - self.since_ms < retry_ms:
            known = _combined(known, self.initializing)
        missing = {}
        for name in names:
            topic = image.topics.get(name)
            if topic is None:
                continue
            has = known[topic.id].partitions if topic.id in known else frozenset[int]()
            if not has or len(has) < len(topic.partitions):
                missing[topic.id] = TopicProgress(name, frozenset(range(len(topic.partitions))) - has)
        return missing

    def begun(self, topics: Progress) -> ShareTopics:
        initializing = _combined(self.initializing, topics)
        return replace(self, initializing=initializing, deleting=self.deleting - initializing.keys())

    def done(self, partitions: Partitions, image: MetadataImage) -> ShareTopics:
        now = {topic: TopicProgress(_name(topic, image), numbers) for topic, numbers in partitions.items()}
        return replace(self.given_up(partitions), initialized=_combined(self.initialized, now))

    def given_up(self, partitions: Partitions) -> ShareTopics:
        left = dict(self.initializing)
        for topic in left.keys() & partitions.keys():
            still = left[topic].partitions - partitions[topic]
            if still:
                left[topic] = TopicProgress(left[topic].name, still)
            else:
                del left[topic]
        return replace(self, initializing=left)

    def all_to_delete(self, image: MetadataImage) -> Progress:
        """Return all partitions of the group that have a state, including those that are already being deleted."""
        again = {
            topic: TopicProgress(image.topics_by_id[topic].name, frozenset(image.topics_by_id[topic].partitions))
            for topic in self.deleting
            if topic in image.topics_by_id
        }
        return _combined(_combined(self.initialized, self.initializing), again)

    def to_delete(self, topic_id: bytes, image: MetadataImage) -> frozenset[int] | None:
        """Return the partitions of a topic whose state has to be deleted, or None."""
        if topic_id in self.initialized:
            return self.initialized[topic_id].partitions
        return frozenset(image.topics_by_id[topic_id].partitions) if topic_id in self.deleting else None

    def with_deleting(self, topics: Iterable[bytes]) -> ShareTopics:
        to_delete = frozenset(topics)
        initialized = {topic: one for topic, one in self.initialized.items() if topic not in to_delete}
        return replace(self, initialized=initialized, deleting=self.deleting | to_delete)

    def without(self, topics: Collection[bytes]) -> ShareTopics:
        """Return the topics without deleted ones."""
        return replace(
            self,
            initializing={topic: one for topic, one in self.initializing.items() if topic not in topics},
            initialized={topic: one for topic, one in self.initialized.items() if topic not in topics},
            deleting=self.deleting.difference(topics),
        )

    def deleting_names(self, image: MetadataImage) -> dict[bytes, str]:
        return {topic: _name(topic, image) for topic in self.deleting}

    @property
    def assignable(self) -> Partitions:
        return {topic: one.partitions for topic, one in self.initialized.items()}


def _combined(earlier: Progress, later: Progress) -> dict[bytes, TopicProgress]:
    combined = dict(earlier)
    for topic, one in later.items():
        before = combined.get(topic)
        combined[topic] = one if before is None else TopicProgress(one.name, before.partitions | one.partitions)
    return combined


def _name(topic_id: bytes, image: MetadataImage) -> str:
    topic = image.topics_by_id.get(topic_id)
    return _UNKNOWN if topic is None else topic.name
