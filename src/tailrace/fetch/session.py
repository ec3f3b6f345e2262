"""FetchSession: the partitions that a client fetches, stored between its requests.

A client with a session sends only changes and receives only changes. For each partition the session stores the
request's values (offset, limit, epochs) and the values last sent (high watermark, log start). A response contains a
partition if it has records, an error, a diverging epoch or a preferred replica, or if the high watermark or the log
start has moved. An error is sent with high watermark −1, so the partition is sent again when the error is gone.

Partitions are read in order, and a partition that returned records moves to the end. With a limited budget each
partition therefore gets its turn.

Most partitions of a large session rarely change. A partition is *idle* once it was answered and its fetch offset is at
the high watermark. It stays idle while high watermark and log start are the ones last sent, and the replica and its
role are the same. A fetch skips idle partitions after a few comparisons.
"""

from __future__ import annotations

from typing import Final

from tailrace.log.segments.position import LogPosition
from tailrace.log.watermarks import Watermarks
from tailrace.metadata.image.image import MetadataImage
from tailrace.model.errors import ErrorCode
from tailrace.model.ids import LeaderEpoch, Offset, TopicPartition
from tailrace.protocol.flat.fetch import PartitionAnswer, PartitionAsk
from tailrace.replication.follower import FollowerRole
from tailrace.replication.hosted_partitions import HostedPartitions
from tailrace.replication.leader import LeaderRole
from tailrace.replication.partition import Partition
from tailrace.waiting.purgatory import Purgatory

NO_SESSION = 0
INITIAL_EPOCH = 0  # in a request: open a new session
FINAL_EPOCH = -1  # in a request: close the session, open none
PARTITIONS_PER_STEP = 512  # a request of more partitions pauses each time after this number
_EPOCH_MAX = 2**31 - 1

NO_TOPIC_ID = bytes(16)
UNKNOWN_POSITION = LogPosition(-1)
_NO_MARKS = Watermarks(-1, UNKNOWN_POSITION, UNKNOWN_POSITION)
_NOTHING_ASKED: Final = (-1, -1, -1, -1, -1, -1)
_new_tuple: Final = tuple.__new__  # makes a NamedTuple in half the time

# A partition within a request: the topic (by id from version 13 on, by name before) and the partition index.
Identity = tuple[bytes | str, int]


def next_epoch(epoch: int) -> int:
    """Return the epoch of the next request in a session. It never becomes 0 again, which would mean a new session."""
    if epoch < 0:
        return FINAL_EPOCH
    return 1 if epoch == _EPOCH_MAX else epoch + 1


class PartitionFetch:
    """The requested values of one partition, its local replica, and in a session the values last sent."""

    __slots__ = (
        "current_leader_epoch",
        "fetch_offset",
        "fetcher_log_start",
        "identity",
        "is_idle",
        "is_resolved",
        "key",
        "last_fetched_epoch",
        "marks",
        "max_bytes",
        "partition",
        "position",
        "refusal",
        "role",
        "sent_high_watermark",
        "sent_log_start",
        "topic",
        "topic_id",
    )

    def __init__(
        self, identity: Identity, topic: str | None, topic_id: bytes, asked: PartitionAsk = _NOTHING_ASKED
    ) -> None:
        self.identity = identity
        self.topic = topic  # None while no topic with this id is known
        self.topic_id = topic_id
        self.sent_high_watermark: Offset = -1
        self.sent_log_start: Offset = -1
        # Found by `resolve`, and valid until the hosted partitions or the topics change.
        self.is_resolved = False
        self.key: TopicPartition = _new_tuple(TopicPartition, (topic or "", identity[1]))
        self.partition: Partition | None = None
        self.marks = _NO_MARKS  # the watermarks of its log
        self.role: LeaderRole | FollowerRole | None = None
        self.refusal: ErrorCode | None = None
        # The start of the last read, from which a waiting fetch counts its bytes.
        self.position = UNKNOWN_POSITION
        self.ask(asked)

    @property
    def index(self) -> int:
        return self.identity[1]

    def ask(self, asked: PartitionAsk) -> None:
        """Store the values that a request has for this partition."""
        _, leader_epoch, self.fetch_offset, last_epoch, self.fetcher_log_start, self.max_bytes = asked
        self.current_leader_epoch: LeaderEpoch = leader_epoch if leader_epoch > -1 else -1
        self.last_fetched_epoch: LeaderEpoch = last_epoch if last_epoch > -1 else -1
        self.is_idle = False

    def resolve(self, image: MetadataImage, partitions: HostedPartitions) -> None:
        """Look up the topic's name, the partition's existence, and its local replica."""
        self.is_resolved = True
        self.refusal = None
        self.partition = None
        if self.topic is None and self.name_in(image) is None:
            self.refusal = ErrorCode.UNKNOWN_TOPIC_ID
        elif image.partition(self.key) is None:
            self.refusal = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        else:
            self.partition = partitions.get(self.key)

    def name_in(self, image: MetadataImage) -> str | None:
        """Return the topic's name, or None while no topic has its id."""
        if self.topic is None and (topic := image.topics_by_id.get(self.topic_id)) is not None:
            self.topic = topic.name
            self.key = TopicPartition(topic.name, self.index)
        return self.topic

    def find_again(self, partitions: HostedPartitions) -> None:
        """Look up the local replica again, because the hosted partitions have changed."""
        self.partition = partitions.get(self.key)
        self.is_idle = False

    def mark_active(self) -> None:
        """Let the next fetch read this partition again, even if nothing changes."""
        self.is_idle = False

    def record_read(self, position: LogPosition, partition: Partition) -> None:
        """Store where a read began, and the log and the role of the replica at that time."""
        self.position = position
        self.marks, self.role = partition.log.marks, partition.role

    def refuse_read(self) -> None:
        """Note that the partition could not be read: a waiting fetch counts none of its bytes."""
        self.position = UNKNOWN_POSITION

    def must_be_sent(self, answer: PartitionAnswer) -> bool:
        """Return True if an incremental response has to contain this partition."""
        return bool(
            answer.high_watermark != self.sent_high_watermark
            or answer.log_start_offset != self.sent_log_start
            or answer.error_code
            or answer.records
            or answer.preferred_replica != -1
            or answer.diverging is not None
        )

    def lacks_watermark(self, high_watermark: Offset) -> bool:
        """Return True if the follower was sent a lower high watermark than its log can take. Without a session this is
        False, because nothing is known."""
        return 0 <= self.sent_high_watermark < high_watermark and self.sent_high_watermark < self.fetch_offset

    def record_sent(self, answer: PartitionAnswer) -> None:
        """Store the values that the client is sent."""
        self.sent_log_start = answer.log_start_offset
        self.sent_high_watermark = answer.high_watermark  # −1 with an error
        self.is_idle = not (
            answer.error_code
            or answer.records
            or self.fetch_offset != answer.high_watermark
            or answer.preferred_replica != -1
            or answer.diverging is not None
            or self.last_fetched_epoch >= 0  # the leader's epochs may diverge although nothing else changes
        )

    def __repr__(self) -> str:
        return f"PartitionFetch({self.topic or self.topic_id.hex()}-{self.index} from {self.fetch_offset})"


class FetchSession:
    """The session of one client. It is hashed by identity, because it is the key under which its waiting fetch is
    watched."""

    __slots__ = (
        "created_ms",
        "epoch",
        "evictable_by",
        "evictable_key",
        "generation",
        "id",
        "is_closed",
        "is_privileged",
        "last_used_ms",
        "linked",
        "partitions",
        "topics",
        "uses_topic_ids",
    )

    def __init__(
        self,
        session_id: int,
        partitions: dict[Identity, PartitionFetch],
        *,
        is_privileged: bool,
        uses_topic_ids: bool,
        now_ms: int,
    ) -> None:
        self.id = session_id
        self.partitions = partitions
        self.is_privileged = is_privileged  # a follower's session
        self.uses_topic_ids = uses_topic_ids
        self.is_closed = False  # a fetch of the session may still be running
        self.created_ms = self.last_used_ms = now_ms
        self.epoch = next_epoch(INITIAL_EPOCH)
        self.linked: dict[TopicPartition, PartitionFetch] = {}  # the partitions whose checks reach this session
        # The versions of topics and hosted partitions for which the lookups are valid.
        self.topics: object = None
        self.generation = -1
        # Written by FetchSessions.
        self.evictable_key: tuple[bool, int, int] = (is_privileged, 0, session_id)
        self.evictable_by: tuple[bool, bool] = (False, False)

    def advance_epoch(self) -> None:
        """Expect the epoch after the current one in the next request."""
        self.epoch = next_epoch(self.epoch)

    def __str__(self) -> str:
        return f"session {self.id}"

    def __len__(self) -> int:
        return len(self.partitions)

    def use(self, now_ms: int) -> None:
        """Record that the session is used now."""
        self.last_used_ms = now_ms

    def set_evictable(self, key: tuple[bool, int, int], by: tuple[bool, bool]) -> None:
        """Store under which key, and by which kinds of sessions, this session may be evicted."""
        self.evictable_key, self.evictable_by = key, by

    def update(self, identity: Identity, topic: str | None, topic_id: bytes, asked: PartitionAsk) -> None:
        """Store the values that an incremental request has for one partition, which may be new in the session."""
        known = self.partitions.get(identity)
        if known is None:
            self.partitions[identity] = PartitionFetch(identity, topic, topic_id, asked)
        else:
            known.ask(asked)

    def forget(self, identity: Identity, purgatory: Purgatory) -> None:
        """Remove a partition from the session."""
        gone = self.partitions.pop(identity, None)
        if gone is not None:
            self._unlink(gone.key, gone, purgatory)

    def link(self, fetch: PartitionFetch, purgatory: Purgatory) -> None:
        """Make a check of this partition try the session's waiting fetch."""
        if self.is_closed:
            return
        if fetch.key not in self.linked:
            purgatory.link(fetch.key, self)
        self.linked[fetch.key] = fetch

    def _unlink(self, key: TopicPartition, fetch: PartitionFetch, purgatory: Purgatory) -> None:
        # A session by topic ids may contain a topic and its successor of the same name.
        if self.linked.get(key) is fetch:
            del self.linked[key]
            purgatory.unlink(key, self)

    def close(self, purgatory: Purgatory) -> None:
        self.is_closed = True
        for key in self.linked:
            purgatory.unlink(key, self)
        self.linked.clear()

    def move_to_end(self, fetch: PartitionFetch) -> None:
        """Move a partition that returned records to the end, so that the others come first in the next fetch."""
        if self.partitions.pop(fetch.identity, None) is not None:
            self.partitions[fetch.identity] = fetch

    def follow_changes(self, topics: object, generation: int) -> None:
        """Invalidate all lookups if topics or hosted partitions have changed."""
        if self.topics is not topics or self.generation != generation:
            for fetch in self.partitions.values():
                fetch.is_resolved = fetch.is_idle = False
            self.topics, self.generation = topics, generation

    def __repr__(self) -> str:
        return f"FetchSession({self.id}, epoch {self.epoch}, {len(self.partitions)} partitions)"
