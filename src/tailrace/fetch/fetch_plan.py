"""FetchParams and FetchPlan: what a fetch wants as a whole, and which partitions it reads in which order.

Partitions that cannot be read at all are refused here, each for itself: a topic id that nobody knows, a topic that the
client may not read, a partition that does not exist. They ride along with the answer and never hold up the rest.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple, Protocol

from tailrace.fetch.context import FetchContext
from tailrace.fetch.down_conversion import FIRST_UNCONVERTED_VERSION, LAST_HARD_LIMIT_VERSION
from tailrace.fetch.isolation import is_consumer, is_follower, isolation_of
from tailrace.fetch.session import PARTITIONS_A_STEP, PartitionFetch
from tailrace.log.watermarks import Isolation
from tailrace.metadata.image.image import MetadataImage
from tailrace.model.errors import ErrorCode
from tailrace.model.ids import TopicPartition
from tailrace.model.steps import Steps
from tailrace.protocol.codegen.field_versions import first_version_with
from tailrace.protocol.flat.fetch import FetchAsk
from tailrace.replication.hosted_partitions import HostedPartitions
from tailrace.waiting.purgatory import Purgatory

_RACKS_FROM = first_version_with("FetchRequest", "rack_id")
INT_MAX = 2**31 - 1


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
        replica_id = ask.replica_id
        follower = is_follower(replica_id)
        most = min(ask.max_bytes, max_bytes)
        rack = ask.rack if version >= _RACKS_FROM else None
        return cls(
            replica_id,
            ask.replica_epoch,
            ask.max_wait_ms,
            min(ask.min_bytes, most),
            most,
            isolation_of(replica_id, ask.isolation_level),
            version <= LAST_HARD_LIMIT_VERSION,
            rack,
            follower,
            # A consumer of a version with racks may read from a follower; one that is sent there comes with its rack.
            follower or (rack is None and is_consumer(replica_id)),
            version < FIRST_UNCONVERTED_VERSION,
        )


class FetchPlan(NamedTuple):
    reads: list[PartitionFetch]
    refused: list[tuple[PartitionFetch, ErrorCode]]


def plan_fetch(
    context: FetchContext,
    image: MetadataImage,
    partitions: HostedPartitions,
    purgatory: Purgatory,
    *,
    is_follower: bool,
    client: object,
    authorizer: FetchAuthorizer | None,
    skips_settled: bool,
) -> Steps[FetchPlan]:
    """The reads of a fetch in order. With `skips_settled`, without those that have no news."""
    wanted: Collection[PartitionFetch] = context.partitions.values()
    if authorizer is not None and is_follower and not authorizer.may_replicate(client):
        return FetchPlan([], [(fetch, ErrorCode.TOPIC_AUTHORIZATION_FAILED) for fetch in wanted])
    session = context.session
    if session is not None and (session.topics is not image.topics or session.generation != partitions.generation):
        session.forget_what_was_found()
        session.topics, session.generation = image.topics, partitions.generation
    unreadable: set[str] = set()
    if authorizer is not None and not is_follower:
        unreadable = yield from _unreadable(list(wanted), image, client, authorizer)
        for fetch in wanted if unreadable else ():
            fetch.is_settled = fetch.is_settled and fetch.topic not in unreadable
    wanted = unsettled(wanted) if skips_settled else list(wanted)
    reads: list[PartitionFetch] = []
    refused: list[tuple[PartitionFetch, ErrorCode]] = []
    # A consumer is told of unknown ids before other refusals, a follower of all in order: so does Kafka.
    nameless = refused if is_follower else []
    for number, fetch in enumerate(wanted, 1):
        if not number % PARTITIONS_A_STEP:
            yield
        if not fetch.is_resolved:
            resolve(fetch, image, partitions)
            if session is not None and fetch.refusal is None:
                session.link(fetch, purgatory)
        if fetch.refusal is None and not unreadable:
            reads.append(fetch)
        elif fetch.topic is None:
            nameless.append((fetch, ErrorCode.UNKNOWN_TOPIC_ID))
        elif fetch.topic in unreadable:
            refused.append((fetch, ErrorCode.TOPIC_AUTHORIZATION_FAILED))
        elif fetch.refusal is not None:
            refused.append((fetch, fetch.refusal))
        else:
            reads.append(fetch)
    return FetchPlan(reads, nameless + refused if nameless and not is_follower else refused)


def _unreadable(
    wanted: Sequence[PartitionFetch], image: MetadataImage, client: object, authorizer: FetchAuthorizer
) -> Steps[set[str]]:
    """Return the topics that the client may not read."""
    unreadable: set[str] = set()
    for first in range(0, len(wanted), PARTITIONS_A_STEP):
        if first:
            yield
        topics = {_name(fetch, image) for fetch in wanted[first : first + PARTITIONS_A_STEP]}
        unreadable |= authorizer.unreadable(client, {topic for topic in topics if topic is not None})
    return unreadable


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


def _name(fetch: PartitionFetch, image: MetadataImage) -> str | None:
    if fetch.topic is None and (topic := image.topics_by_id.get(fetch.topic_id)) is not None:
        fetch.topic = topic.name
        fetch.key = TopicPartition(topic.name, fetch.index)
    return fetch.topic


def resolve(fetch: PartitionFetch, image: MetadataImage, partitions: HostedPartitions) -> None:
    """Look up by what name a partition goes, whether it exists, and its replica here."""
    fetch.is_resolved = True
    fetch.refusal = None
    fetch.partition = None
    if _name(fetch, image) is None:
        fetch.refusal = ErrorCode.UNKNOWN_TOPIC_ID
    elif image.partition(fetch.key) is None:
        fetch.refusal = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    else:
        fetch.partition = partitions.get(fetch.key)
