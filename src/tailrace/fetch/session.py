"""FetchSession: the partitions that a client fetches, remembered between its requests.

A client that has a session sends only what changed and is answered only what changed. The session keeps for each
partition what is asked of it (offset, limit, epochs) and what was last told (high watermark, log start); a partition is
in an answer if it has records, an error, a diverging epoch, a preferred replica, or if one of those two has moved.
An error comes with high watermark −1, so the partition is told again when the error is gone.

Partitions are read in order, and one that returned records goes to the end: with a limited budget each has its turn.

Most partitions of a large session have nothing new most of the time. A partition is *settled* once it was answered
and stands at the high watermark: as long as that and the log start are the ones last told, under the same role of the
same replica, there is nothing to tell and it is passed over after a few comparisons.
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
PARTITIONS_A_STEP = 512  # then a request that is about many pauses
_EPOCH_MAX = 2**31 - 1

NO_TOPIC_ID = bytes(16)
UNKNOWN_POSITION = LogPosition(-1)
_NO_MARKS = Watermarks(-1, UNKNOWN_POSITION, UNKNOWN_POSITION)
_new_tuple: Final = tuple.__new__  # makes a NamedTuple in half the time

# A partition within a request: the topic by its id from version 13 on and by its name before, and its number.
Identity = tuple[bytes | str, int]


def next_epoch(epoch: int) -> int:
    """The epoch of the next request in a session; it never becomes 0 again, which would mean a new one."""
    if epoch < 0:
        return FINAL_EPOCH
    return 1 if epoch == _EPOCH_MAX else epoch + 1


class PartitionFetch:
    """What one partition is asked for, where it was found, and in a session what it was last told."""

    __slots__ = (
        "current_leader_epoch",
        "fetch_offset",
        "fetcher_log_start",
        "identity",
        "is_resolved",
        "is_settled",
        "key",
        "last_fetched_epoch",
        "marks",
        "max_bytes",
        "partition",
        "position",
        "refusal",
        "role",
        "told_high_watermark",
        "told_log_start",
        "topic",
        "topic_id",
    )

    def __init__(self, identity: Identity, topic: str | None, topic_id: bytes) -> None:
        self.identity = identity
        self.topic = topic  # None while no topic with this id is known
        self.topic_id = topic_id
        self.told_high_watermark: Offset = -1
        self.told_log_start: Offset = -1
        self.is_settled = False
        # Found with `resolve`, and good until what is hosted or the topics change.
        self.is_resolved = False
        self.key: TopicPartition = _new_tuple(TopicPartition, (topic or "", identity[1]))
        self.partition: Partition | None = None
        self.marks = _NO_MARKS  # those of its log
        self.role: LeaderRole | FollowerRole | None = None
        self.refusal: ErrorCode | None = None
        # Where the last read began; what a waiting fetch counts its bytes from.
        self.position = UNKNOWN_POSITION
        self.fetch_offset: Offset = -1
        self.max_bytes = -1
        self.current_leader_epoch: LeaderEpoch = -1
        self.last_fetched_epoch: LeaderEpoch = -1
        self.fetcher_log_start: Offset = -1

    @property
    def index(self) -> int:
        return self.identity[1]

    def ask(self, asked: PartitionAsk) -> None:
        """Take over what a request asks of this partition."""
        _, leader_epoch, self.fetch_offset, last_epoch, self.fetcher_log_start, self.max_bytes = asked
        self.current_leader_epoch = leader_epoch if leader_epoch > -1 else -1
        self.last_fetched_epoch = last_epoch if last_epoch > -1 else -1
        self.is_settled = False

    def resolve(self, image: MetadataImage, partitions: HostedPartitions) -> None:
        """Look up the topic's name, whether the partition exists, and its replica here."""
        self.is_resolved = True
        self.refusal = None
        self.partition = None
        if self.name_in(image) is None:
            self.refusal = ErrorCode.UNKNOWN_TOPIC_ID
        elif image.partition(self.key) is None:
            self.refusal = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        else:
            self.partition = partitions.get(self.key)

    def name_in(self, image: MetadataImage) -> str | None:
        """Return the topic's name, None while no topic has its id."""
        if self.topic is None and (topic := image.topics_by_id.get(self.topic_id)) is not None:
            self.topic = topic.name
            self.key = TopicPartition(topic.name, self.index)
        return self.topic

    def find_again(self, partitions: HostedPartitions) -> None:
        """Look up the replica again, because other partitions are hosted now."""
        self.partition = partitions.get(self.key)
        self.is_settled = False

    def is_news(self, answer: PartitionAnswer) -> bool:
        """Return True if an incremental response has to contain this partition."""
        return bool(
            answer.high_watermark != self.told_high_watermark
            or answer.log_start_offset != self.told_log_start
            or answer.error_code
            or answer.records
            or answer.preferred_replica != -1
            or answer.diverging is not None
        )

    def lacks_watermark(self, high_watermark: Offset) -> bool:
        """Whether a follower was told less than its log allows it to take. Without a session it is not known."""
        return 0 <= self.told_high_watermark < high_watermark and self.told_high_watermark < self.fetch_offset

    def told(self, answer: PartitionAnswer) -> None:
        """Note what the client is sent."""
        self.told_log_start = answer.log_start_offset
        self.told_high_watermark = answer.high_watermark  # −1 with an error
        self.is_settled = not (
            answer.error_code
            or answer.records
            or self.fetch_offset != answer.high_watermark
            or answer.preferred_replica != -1
            or answer.diverging is not None
            or self.last_fetched_epoch >= 0  # the leader's epochs may come to differ though nothing else does
        )

    def __repr__(self) -> str:
        return f"PartitionFetch({self.topic or self.topic_id.hex()}-{self.index} from {self.fetch_offset})"


class FetchSession:
    """Hashed by identity: it is the key by which its waiting fetch is watched."""

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
        self.is_privileged = is_privileged  # a follower's
        self.uses_topic_ids = uses_topic_ids
        self.is_closed = False  # a fetch of it may still be under way
        self.created_ms = self.last_used_ms = now_ms
        self.epoch = next_epoch(INITIAL_EPOCH)
        self.linked: dict[TopicPartition, PartitionFetch] = {}  # those whose checks reach this session
        # For which topics and hosted partitions what was looked up is good.
        self.topics: object = None
        self.generation = -1
        # Kept by FetchSessions.
        self.evictable_key: tuple[bool, int, int] = (is_privileged, 0, session_id)
        self.evictable_by: tuple[bool, bool] = (False, False)

    def __len__(self) -> int:
        return len(self.partitions)

    def update(self, identity: Identity, topic: str | None, topic_id: bytes, asked: PartitionAsk) -> None:
        """Take over what an incremental request asks of one partition, which may be new in the session."""
        known = self.partitions.get(identity)
        if known is None:
            known = self.partitions[identity] = PartitionFetch(identity, topic, topic_id)
        known.ask(asked)

    def forget(self, identity: Identity, purgatory: Purgatory) -> None:
        """Remove a partition from the session."""
        gone = self.partitions.pop(identity, None)
        if gone is not None:
            self._unlink(gone.key, gone, purgatory)

    def link(self, fetch: PartitionFetch, purgatory: Purgatory) -> None:
        """From now on a check of this partition tries the session's waiting fetch."""
        if self.is_closed:
            return
        if fetch.key not in self.linked:
            purgatory.link(fetch.key, self)
        self.linked[fetch.key] = fetch

    def _unlink(self, key: TopicPartition, fetch: PartitionFetch, purgatory: Purgatory) -> None:
        # By id, a topic and its successor of the same name may both be in the session.
        if self.linked.get(key) is fetch:
            del self.linked[key]
            purgatory.unlink(key, self)

    def close(self, purgatory: Purgatory) -> None:
        self.is_closed = True
        for key in self.linked:
            purgatory.unlink(key, self)
        self.linked.clear()

    def to_the_end(self, fetch: PartitionFetch) -> None:
        """It returned records: the others come first next time."""
        if self.partitions.pop(fetch.identity, None) is not None:
            self.partitions[fetch.identity] = fetch

    def follow_changes(self, topics: object, generation: int) -> None:
        """Have everything looked up again if topics or hosted partitions have changed."""
        if self.topics is not topics or self.generation != generation:
            for fetch in self.partitions.values():
                fetch.is_resolved = fetch.is_settled = False
            self.topics, self.generation = topics, generation

    def __repr__(self) -> str:
        return f"FetchSession({self.id}, epoch {self.epoch}, {len(self.partitions)} partitions)"
