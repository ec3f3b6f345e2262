"""FetchParams and FetchPlan: what a fetch wants as a whole, and which partitions it reads in which order.

Partitions that cannot be read at all are refused here, each for itself: a topic id that nobody knows, a topic that the
client may not read, a partition that does not exist. They ride along with the answer and never hold up the rest.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence, Set
from typing import Final, NamedTuple, Protocol

from tailrace.fetch.down_conversion import FIRST_UNCONVERTED_VERSION, LAST_HARD_LIMIT_VERSION
from tailrace.fetch.isolation import is_consumer, is_follower, isolation_of
from tailrace.fetch.session import PARTITIONS_A_STEP, FetchSession, PartitionFetch
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
_new_tuple: Final = tuple.__new__  # makes a NamedTuple in half the time


class FetchAuthorizer(Protocol):
    """Who may fetch what. `client` is whatever the broker knows a client by."""

    def may_replicate(self, client: object) -> bool:
        """ClusterAction on the cluster: needed by a follower, for the whole request."""

    def unreadable(self, client: object, topics: Iterable[str]) -> set[str]:
        """Those of the topics on which the client has no Read."""


class FetchParams(NamedTuple):
    replica_id: int
    replica_epoch: int
    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    isolation: Isolation
    has_hard_limit: bool
    rack: str | None  # None: the version knows no racks
    is_follower: bool
    leader_only: bool  # only a leader may answer
    needs_conversion: bool = False  # the client's version cannot read stored batches

    @classmethod
    def of(cls, ask: FetchAsk, version: int, max_bytes: int) -> FetchParams:
        """`max_bytes` is the most that the broker allows."""
        replica_id, replica_epoch, max_wait_ms, min_bytes, most, isolation_level = ask[:6]
        if most > max_bytes:
            most = max_bytes
        follower = is_follower(replica_id)
        rack = ask.rack if version >= _RACKS_FROM else None
        params: FetchParams = _new_tuple(
            cls,
            (
                replica_id,
                replica_epoch,
                max_wait_ms,
                min_bytes if min_bytes < most else most,
                most,
                isolation_of(replica_id, isolation_level),
                version <= LAST_HARD_LIMIT_VERSION,
                rack,
                follower,
                # A consumer of a version with racks may read from a follower; one that is sent there has its rack.
                follower or (rack is None and is_consumer(replica_id)),
                version < FIRST_UNCONVERTED_VERSION,
            ),
        )
        return params


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
        # As in Kafka, a consumer gets unknown ids before other refusals, a follower gets all in order.
        self._nameless = self.refused if is_follower else []
        if session is not None:
            session.follow_changes(image.topics, partitions.generation)

    def authorize(self, wanted: Collection[PartitionFetch], client: object, authorizer: FetchAuthorizer) -> Steps[bool]:
        """Ask for the client's rights. Return False, with everything refused, if it has none at all."""
        if self._is_follower:
            if authorizer.may_replicate(client):
                return True
            self.refused += [(fetch, ErrorCode.TOPIC_AUTHORIZATION_FAILED) for fetch in wanted]
            return False
        unreadable: set[str] = set()
        every = list(wanted)
        for first in range(0, len(every), PARTITIONS_A_STEP):
            if first:
                yield
            topics = {fetch.name_in(self._image) for fetch in every[first : first + PARTITIONS_A_STEP]}
            unreadable |= authorizer.unreadable(client, {topic for topic in topics if topic is not None})
        if unreadable:
            self._unreadable = unreadable
            for fetch in wanted:
                fetch.is_settled = fetch.is_settled and fetch.topic not in unreadable
        return True

    def take(self, wanted: Sequence[PartitionFetch]) -> Steps[None] | None:
        """Decide on partitions, at once or in steps if they are many. `end` follows."""
        if len(wanted) > PARTITIONS_A_STEP:
            return in_pieces(self._add, wanted, PARTITIONS_A_STEP)
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
        """Put the refusals in order."""
        if self._nameless and not self._is_follower:
            self.refused = self._nameless + self.refused


def unsettled(fetches: Iterable[PartitionFetch]) -> list[PartitionFetch]:
    """Those that may have news. This is all that an idle partition of a session costs: keep it short."""
    return [
        fetch
        for fetch in fetches
        if not (
            fetch.is_settled
            and (marks := fetch.marks).high_watermark.offset == fetch.told_high_watermark
            and marks.log_start_offset == fetch.told_log_start
            and fetch.partition.role is fetch.role  # type: ignore[union-attr]
        )
    ]
