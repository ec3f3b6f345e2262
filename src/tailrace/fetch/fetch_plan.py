"""FetchParams and FetchPlan: the limits of a fetch, and the partitions that it reads, in order.

Partitions that cannot be read are refused here one by one: an unknown topic id, a topic that the client may not read, a
partition that does not exist. The response contains their errors beside the other partitions.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence, Set
from functools import lru_cache
from typing import Final, NamedTuple, Protocol

from tailrace.fetch.down_conversion import FIRST_UNCONVERTED_VERSION, LAST_HARD_LIMIT_VERSION
from tailrace.fetch.isolation import is_consumer, is_follower, isolation_of
from tailrace.fetch.session import PARTITIONS_PER_STEP, FetchSession, PartitionFetch
from tailrace.log.watermarks import Isolation
from tailrace.metadata.image.image import MetadataImage
from tailrace.model.errors import ErrorCode
from tailrace.model.steps import Steps, in_pieces
from tailrace.protocol.codegen.field_versions import first_version_with
from tailrace.protocol.flat.fetch import FetchAsk
from tailrace.replication.hosted_partitions import HostedPartitions
from tailrace.waiting.purgatory import Purgatory

_RACKS_FROM = first_version_with("FetchRequest", "rack_id")
INT_MAX = 2**31 - 1
_NONE: Final[Set[str]] = frozenset()
_UNKNOWN_TOPIC_ID: Final = ErrorCode.UNKNOWN_TOPIC_ID
PARAMS_KEPT: Final = 64


class FetchAuthorizer(Protocol):
    """Decides which topics a client may fetch. `client` is the broker's object for the client."""

    def may_replicate(self, client: object) -> bool:
        """Return True if the client has ClusterAction on the cluster, which a follower's request needs."""

    def unreadable(self, client: object, topics: Iterable[str]) -> set[str]:
        """Return the topics for which the client has no Read permission."""


class FetchParams(NamedTuple):
    replica_id: int
    replica_epoch: int
    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    isolation: Isolation
    has_hard_limit: bool
    rack: str | None  # None: the request's version has no rack
    is_follower: bool
    leader_only: bool  # only the leader may answer
    needs_conversion: bool = False  # the client's version cannot read stored batches

    @classmethod
    def of(cls, ask: FetchAsk, version: int, max_bytes: int) -> FetchParams:
        """Return the parameters of a request. `max_bytes` is the broker's limit."""
        return _params(ask[:6], ask.rack if version >= _RACKS_FROM else None, version, max_bytes)


@lru_cache(maxsize=PARAMS_KEPT)
def _params(asked: tuple[int, int, int, int, int, int], rack: str | None, version: int, max_bytes: int) -> FetchParams:
    """Return the parameters of a request. They are kept, because a client sends the same ones in every request."""
    replica_id, replica_epoch, max_wait_ms, min_bytes, most, isolation_level = asked
    most = min(most, max_bytes)
    follower = is_follower(replica_id)
    return FetchParams(
        replica_id,
        replica_epoch,
        max_wait_ms,
        min(min_bytes, most),
        most,
        isolation_of(replica_id, isolation_level),
        has_hard_limit=version <= LAST_HARD_LIMIT_VERSION,
        rack=rack,
        is_follower=follower,
        # A consumer with a rack-aware version may read from a follower. The leader redirects it by its rack.
        leader_only=follower or (rack is None and is_consumer(replica_id)),
        needs_conversion=version < FIRST_UNCONVERTED_VERSION,
    )


class FetchPlan:
    """The partitions that a fetch reads, in order, and those that it refuses."""

    __slots__ = (
        "_image", "_is_follower", "_nameless", "_partitions", "_purgatory", "_session", "_unreadable", "reads",
        "refused",
    )  # fmt: skip

    def __init__(
        self,
        session: FetchSession | None,
        image: MetadataImage,
        partitions: HostedPartitions,
        purgatory: Purgatory,
        is_follower: bool,
    ) -> None:
        self._session = session
        self._image = image
        self._partitions = partitions
        self._purgatory = purgatory
        self._is_follower = is_follower
        self._unreadable: Set[str] = _NONE  # topics that the client may not read
        self.reads: list[PartitionFetch] = []
        self.refused: list[tuple[PartitionFetch, ErrorCode]] = []
        # As in Kafka, a consumer's response has unknown topic ids before other refusals, a follower's has all in order.
        self._nameless = self.refused if is_follower else []
        if session is not None:
            session.follow_changes(image.topics, partitions.generation)

    def authorize(self, wanted: Collection[PartitionFetch], client: object, authorizer: FetchAuthorizer) -> Steps[bool]:
        """Check the client's permissions. Return False, with every partition refused, if the whole request is
        denied."""
        if self._is_follower:
            if authorizer.may_replicate(client):
                return True
            self.refused += [(fetch, ErrorCode.TOPIC_AUTHORIZATION_FAILED) for fetch in wanted]
            return False
        unreadable: set[str] = set()
        every = list(wanted)
        for first in range(0, len(every), PARTITIONS_PER_STEP):
            if first:
                yield
            topics = {fetch.name_in(self._image) for fetch in every[first : first + PARTITIONS_PER_STEP]}
            unreadable |= authorizer.unreadable(client, {topic for topic in topics if topic is not None})
        if unreadable:
            self._unreadable = unreadable
            for fetch in wanted:
                if fetch.topic in unreadable:
                    fetch.mark_active()
        return True

    def take(self, wanted: Sequence[PartitionFetch]) -> Steps[None] | None:
        """Decide on partitions, at once, or in steps if there are many. Call `end` afterwards."""
        if len(wanted) > PARTITIONS_PER_STEP:
            return in_pieces(self._add, wanted, PARTITIONS_PER_STEP)
        self._add(wanted)
        return None

    def _add(self, wanted: Sequence[PartitionFetch]) -> None:
        session, unreadable = self._session, self._unreadable
        for fetch in wanted:
            if not fetch.is_resolved:
                fetch.resolve(self._image, self._partitions)
                if session is not None and fetch.refusal is None:
                    session.link(fetch, self._purgatory)
            if fetch.refusal is None and not unreadable:
                self.reads.append(fetch)
            elif fetch.topic is None:
                self._nameless.append((fetch, _UNKNOWN_TOPIC_ID))
            elif fetch.topic in unreadable:
                self.refused.append((fetch, ErrorCode.TOPIC_AUTHORIZATION_FAILED))
            elif fetch.refusal is not None:
                self.refused.append((fetch, fetch.refusal))
            else:
                self.reads.append(fetch)

    def end(self) -> None:
        """Put the refusals in their order."""
        if self._nameless and not self._is_follower:
            self.refused = self._nameless + self.refused


def active_partitions(fetches: Iterable[PartitionFetch]) -> list[PartitionFetch]:
    """Return the partitions that may have changed. An idle partition of a session costs no more than this loop: keep it
    short."""
    return [
        fetch
        for fetch in fetches
        if not (
            fetch.is_idle
            and (marks := fetch.marks).high_watermark.offset == fetch.sent_high_watermark
            and marks.log_start_offset == fetch.sent_log_start
            and fetch.partition.role is fetch.role  # type: ignore[union-attr]
        )
    ]
