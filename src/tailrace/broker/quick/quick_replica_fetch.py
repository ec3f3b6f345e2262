"""QuickReplicaFetch: a follower's Fetch in its session, answered without the objects of the general way.

A follower asks again as soon as it is answered, and every acknowledgement of acks=all waits for that. Taken here is the
request that names partitions which the session has, of the epochs that both sides know, and forgets none. How far the
follower is gets noted for all partitions, high watermarks move, and it is answered with records, or waits until some
are appended. Everything else, and everything that is refused, is left to `fetch/fetches.py`: the same request gets the
same answer, byte for byte, on either way. A fetch that has waited goes the general way, too, when something else than
an append has happened meanwhile.
"""

from __future__ import annotations

import struct
from struct import Struct
from typing import Final, NamedTuple

from tailrace.broker.request_context import ConnectionContext, Part, Reply, Request
from tailrace.broker.requests.data.fetch import go_on
from tailrace.broker.security.authorizer import CLUSTER_NAME, AclResource, Operation, rights_of
from tailrace.broker.services import Services
from tailrace.fetch.byte_budget import ByteBudget
from tailrace.fetch.context import IncrementalContext
from tailrace.fetch.fetch_plan import FetchParams
from tailrace.fetch.session import FetchSession, PartitionFetch, next_epoch
from tailrace.log.log_read import read_log
from tailrace.log.position import FileSlice, LogPosition
from tailrace.log.small_read import SMALL_READ_BYTES
from tailrace.log.watermarks import Isolation
from tailrace.model.errors import KafkaError
from tailrace.model.ids import Offset
from tailrace.protocol.primitives import Buffer, uvarint
from tailrace.records.batch import CorruptBatch
from tailrace.replication.leader import LeaderRole
from tailrace.replication.progress import FollowerProgress
from tailrace.waiting.purgatory import DelayedOperation

_VERSIONS: Final = range(15, 19)  # a follower says who it is in a tagged field, topics have ids
_HEADER: Final = Struct(">hhih")
_BODY: Final = Struct(">iiibiiB")  # wait, least and most bytes, isolation, session and its epoch, topics
_TOPIC: Final = Struct(">16sB")  # its id, how many partitions
_PARTITION: Final = Struct(">iiqiqiB")  # number, leader epoch, offset, last epoch, log start, most bytes, tags
_END: Final = Struct(">BBBBBiqB")  # nothing forgotten, no rack; one tag: replica and its epoch
_NO_MORE: Final = (1, 1, 1, 1, 13)
_ANSWER: Final = Struct(">iBihi")  # correlation id, tags, throttle time, error, session
_TOLD: Final = Struct(">ihqqqBi")  # number, error, high watermark, last stable, log start, aborted, preferred replica


class Wish(NamedTuple):
    topic_id: bytes
    number: int
    leader_epoch: int
    offset: int
    last_epoch: int
    log_start: int
    max_bytes: int


class Asked(NamedTuple):
    version: int
    correlation_id: int
    wait_ms: int
    max_bytes: int
    session_id: int
    session_epoch: int
    replica_id: int
    replica_epoch: int
    wishes: list[Wish]


def read_replica_fetch(frame: Buffer) -> Asked | None:
    """What a follower asks in its session; None for anything but the plainest."""
    try:
        _, version, correlation_id, length = _HEADER.unpack_from(frame)
        position = _HEADER.size + max(length, 0)
        if version not in _VERSIONS or frame[position]:
            return None
        wait_ms, least, most, isolation, session_id, epoch, topics = _BODY.unpack_from(frame, position + 1)
        if isolation or epoch < 1 or not 1 <= topics <= 0x7F or least != 1 or wait_ms <= 0:
            return None
        position += 1 + _BODY.size
        wishes = []
        for _ in range(topics - 1):
            topic_id, count = _TOPIC.unpack_from(frame, position)
            position += _TOPIC.size
            if not 1 < count <= 0x7F:
                return None
            for _ in range(count - 1):
                *wish, tags = _PARTITION.unpack_from(frame, position)
                position += _PARTITION.size
                if tags:
                    return None
                wishes.append(Wish(topic_id, *wish))
            if frame[position]:
                return None
            position += 1
        *rest, replica_id, replica_epoch, tags = _END.unpack_from(frame, position)
    except (struct.error, IndexError):
        return None
    if tuple(rest) != _NO_MORE or tags or replica_id < 0 or position + _END.size != len(frame):
        return None
    return Asked(version, correlation_id, wait_ms, most, session_id, epoch, replica_id, replica_epoch, wishes)


class QuickReplicaFetch:
    def __init__(self, services: Services) -> None:
        self.services = services
        self._codes = services.replies.errors_of(1)
        self._rights = rights_of(services.authorizer)

    def handle(self, frame: Buffer, context: ConnectionContext, now_ms: int) -> bool:
        """Whether it was taken: answered, or left to wait. If not, nothing was done."""
        asked = read_replica_fetch(frame)
        if asked is None:
            return False
        services = self.services
        fetches, image = services.fetches, services.controller.image
        session = fetches.sessions.get(asked.session_id)
        follower = image.brokers.get(asked.replica_id)
        if (
            session is None
            or session.epoch != asked.session_epoch
            or not (session.uses_topic_ids and session.is_privileged)
            or session.topics is not image.topics
            or session.generation != services.partitions.generation
            or follower is None
            or follower.fenced
            or follower.epoch != asked.replica_epoch
            or fetches.reader.select_replica is not None
            or (
                self._rights is not None
                and not self._rights.allows(
                    context.principal, context.client_host, Operation.CLUSTER_ACTION, AclResource.CLUSTER, CLUSTER_NAME
                )
            )
        ):
            return False
        services.current_round.settle()
        named: dict[PartitionFetch, tuple[Wish, LeaderRole, FollowerProgress]] = {}
        for wish in asked.wishes:
            fetch = session.partitions.get((wish.topic_id, wish.number))
            found = None if fetch is None else _sound(fetch, wish, asked.replica_id)
            if fetch is None or found is None or fetch in named:
                return False
            named[fetch] = (wish, *found)
        others = self._others(session, named, asked.replica_id)
        if others is None:
            return False
        session.epoch = next_epoch(session.epoch)
        fetches.sessions.touch(session, now_ms)
        moved = []
        stables: dict[PartitionFetch, Offset] = {}  # an answer at once has these as they were before, as in Kafka
        for fetch, (wish, leader, progress) in named.items():
            fetch.fetch_offset = wish.offset
            fetch.max_bytes = wish.max_bytes
            fetch.current_leader_epoch = wish.leader_epoch
            fetch.last_fetched_epoch = wish.last_epoch
            fetch.fetcher_log_start = wish.log_start
            partition = fetch.partition
            assert partition is not None
            partition.traffic.fetch_requests += 1
            end = partition.log.marks.log_end
            fetch.position = end if wish.offset == end.offset else LogPosition(wish.offset)
            stable = fetch.marks.last_stable.offset
            if leader.note_fetch(progress, fetch.position, wish.log_start, end.offset, asked.replica_epoch, now_ms):
                moved.append(partition.key)
                stables[fetch] = stable
        for fetch, progress in others:
            leader_end = fetch.marks.log_end.offset
            progress.note_fetch(progress.log_end, progress.log_start_offset, leader_end, asked.replica_epoch, now_ms)
        for key in moved:
            services.purgatory.check(key, now_ms)
        waiting = WaitingReplicaFetch(self, context, asked, session, now_ms)
        if not waiting.answer(now_ms, stables):
            services.purgatory.watch(waiting, (session,))
            services.replies.parked(context, waiting)
        return True

    def _others(
        self,
        session: FetchSession,
        named: dict[PartitionFetch, tuple[Wish, LeaderRole, FollowerProgress]],
        replica: int,
    ) -> list[tuple[PartitionFetch, FollowerProgress]] | None:
        """What is not named, each with the follower's progress; None if one has to be looked at closely."""
        if len(named) == len(session.partitions):
            return []
        others = []
        for fetch in session.partitions.values():
            if fetch in named:
                continue
            partition = fetch.partition
            if (
                fetch.refusal is not None
                or partition is None
                or (leader := partition.leader) is None
                or leader is not fetch.role
                or fetch.marks is not partition.log.marks
                or replica not in leader.isr.committed
                or (progress := leader.followers.get(replica)) is None
                or progress.log_end.offset != fetch.fetch_offset
                or fetch.fetch_offset > fetch.marks.log_end.offset
            ):
                return None
            others.append((fetch, progress))
        return others

    def put(
        self,
        context: ConnectionContext,
        asked: Asked,
        session: FetchSession,
        found: dict[PartitionFetch, FileSlice],
        stables: dict[PartitionFetch, Offset],
    ) -> None:
        """Answer with what was found and with what else is news."""
        parts: list[Part] = [_ANSWER.pack(asked.correlation_id, 0, 0, 0, session.id)]
        topics: list[tuple[bytes, list[tuple[PartitionFetch, FileSlice | None]]]] = []
        for fetch in session.partitions.values():
            marks, records = fetch.marks, found.get(fetch)
            if (
                records is None
                and marks.high_watermark.offset == fetch.told_high_watermark
                and marks.log_start_offset == fetch.told_log_start
            ):
                continue
            if not topics or topics[-1][0] != fetch.topic_id:
                topics.append((fetch.topic_id, []))
            topics[-1][1].append((fetch, records))
        text = bytearray(uvarint(len(topics) + 1))
        count = 1
        for topic_id, told in topics:
            text += topic_id + uvarint(len(told) + 1)
            for fetch, records in told:
                count += 1
                marks = fetch.marks
                high_watermark, log_start = marks.high_watermark.offset, marks.log_start_offset
                fetch.told_high_watermark, fetch.told_log_start = high_watermark, log_start
                stable = stables.get(fetch, marks.last_stable.offset)
                text += _TOLD.pack(fetch.index, 0, high_watermark, stable, log_start, 0, -1)
                if records is None:
                    text += b"\x01"
                else:
                    assert fetch.partition is not None
                    fetch.partition.traffic.replication_bytes_out += records.size
                    session.to_the_end(fetch)
                    text += uvarint(records.size + 1)
                    if records.size <= SMALL_READ_BYTES:
                        text += records.read()
                    else:
                        parts += [bytes(text), records]
                        text = bytearray()
                text += b"\x00"
            text += b"\x00"
        text += b"\x00"
        parts.append(bytes(text))
        self._codes[0] += count
        self.services.replies.put(Reply(context.connection_id, parts))


def _sound(fetch: PartitionFetch, wish: Wish, replica_id: int) -> tuple[LeaderRole, FollowerProgress] | None:
    """Who leads and how far the follower is, if nothing is to be refused, cut or found first."""
    partition = fetch.partition
    if partition is None or fetch.refusal is not None or (leader := partition.leader) is None:
        return None
    log, latest = partition.log, partition.log.epochs.latest
    if (
        wish.leader_epoch != partition.leader_epoch
        or latest is None
        or wish.last_epoch != latest.epoch
        or not log.marks.log_start_offset <= wish.offset <= log.marks.log_end.offset
        or (progress := leader.followers.get(replica_id)) is None
        or log.config.leader_replication_throttled_replicas
    ):
        return None
    fetch.marks, fetch.role = log.marks, leader
    return leader, progress


def _read(fetch: PartitionFetch, budget: ByteBudget) -> FileSlice | None:
    """What follows in a partition's log, within the budget."""
    partition, place, marks = fetch.partition, fetch.position, fetch.marks
    assert partition is not None
    segments, end, most = partition.log.segments, marks.log_end, budget.share(fetch.max_bytes)
    active = segments.active
    if (
        place.offset == fetch.fetch_offset
        and place.segment_base_offset == active.base_offset == end.segment_base_offset
    ):
        size = end.position - place.position  # it has waited at the log's end, and here is what came
        if size <= most:
            return FileSlice(active.log, place.position, size)
    read = read_log(partition.key, segments, marks, fetch.fetch_offset, most, Isolation.LOG_END, budget.at_least_one)
    return read.slice if budget.keeps(read.first_entry_incomplete) else None


class WaitingReplicaFetch(DelayedOperation):
    """A follower's fetch, until there is something to be read."""

    __slots__ = ("_asked", "_context", "_epoch", "_generation", "_quick", "_received_ms", "_session")

    def __init__(
        self, quick: QuickReplicaFetch, context: ConnectionContext, asked: Asked, session: FetchSession, now_ms: int
    ) -> None:
        super().__init__(now_ms + asked.wait_ms)
        self._quick = quick
        self._context = context
        self._asked = asked
        self._session = session
        self._epoch = session.epoch
        self._generation = quick.services.partitions.generation
        self._received_ms = now_ms

    def try_complete(self, now_ms: int) -> bool:
        fetch = self._session.linked.get(self.woken_by)  # type: ignore[call-overload]
        if fetch is None or not self._is_sound(fetch):
            self._go_generally(now_ms)
            return True
        return fetch.marks.log_end.offset != fetch.fetch_offset and self.answer(now_ms, {})

    def expire(self, now_ms: int) -> None:
        self.answer(now_ms, {}, is_over=True)

    def _is_sound(self, fetch: PartitionFetch) -> bool:
        partition = fetch.partition
        return (
            self._session.epoch == self._epoch
            and self._generation == self._quick.services.partitions.generation
            and partition is not None
            and partition.leader is fetch.role
            and fetch.marks is partition.log.marks
            and fetch.fetch_offset <= fetch.marks.log_end.offset
            and not partition.log.config.leader_replication_throttled_replicas
        )

    def answer(self, now_ms: int, stables: dict[PartitionFetch, Offset], *, is_over: bool = False) -> bool:
        """Answer, if there are records or the time is over; generally, if it is not as simple as that."""
        found: dict[PartitionFetch, FileSlice] = {}
        budget = ByteBudget(min(self._asked.max_bytes, self._quick.services.fetches.max_bytes))
        for fetch in self._session.partitions.values():
            if not self._is_sound(fetch):
                self._go_generally(now_ms)
                return True
            if fetch.fetch_offset != fetch.marks.log_end.offset:
                try:
                    read = _read(fetch, budget)
                except (KafkaError, CorruptBatch, OSError):
                    self._go_generally(now_ms)
                    return True
                if read is not None:
                    found[fetch] = read
                    budget.take(read.size)
        if not found and not is_over:
            return False
        self._quick.put(self._context, self._asked, self._session, found, stables)
        return True

    def _go_generally(self, now_ms: int) -> None:
        """Answer as a general fetch that has waited until now."""
        asked, services = self._asked, self._quick.services
        params = FetchParams(
            asked.replica_id,
            asked.replica_epoch,
            asked.wait_ms,
            1,
            min(asked.max_bytes, services.fetches.max_bytes),
            Isolation.LOG_END,
            False,
            "",
            True,
            True,
        )
        request = Request(self._context, 1, asked.version, asked.correlation_id, None, None, self._received_ms)
        go_on(
            request,
            IncrementalContext(self._session, self._epoch),
            params,
            now_ms,
            fetches=services.fetches,
            partitions=services.partitions,
            replies=services.replies,
            request_work=services.request_work,
            throttling=services.throttling,
        )
