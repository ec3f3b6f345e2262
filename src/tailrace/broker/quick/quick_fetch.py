"""QuickFetch: the Fetch request that comes most, answered without the objects of the general way.

A consumer's fetch of one partition, without a session, that finds something to read, or stands at the end and waits for
whatever comes, and that nobody would send to a replica elsewhere. Everything else and everything that is refused is
left to `fetch/fetches.py`: the same request gets the same answer, byte for byte, on either way. A fetch that has waited
goes the general way, too, when its time is over or its partition is not led here any more.
"""

from __future__ import annotations

from functools import cache
from struct import Struct

from tailrace.broker.handling.handler_binding import bind
from tailrace.broker.quick.quick_replica_fetch import QuickReplicaFetch
from tailrace.broker.request_context import ConnectionContext, Part, Reply, Request
from tailrace.broker.requests.data.fetch import handle
from tailrace.broker.security.authorizer import AclResource, Operation, rights_of
from tailrace.broker.services import Services
from tailrace.log.log_read import read_log
from tailrace.log.position import FileSlice, LogPosition
from tailrace.log.small_read import SMALL_READ_BYTES, read_small
from tailrace.log.watermarks import Isolation, Watermarks
from tailrace.model.errors import KafkaError
from tailrace.model.ids import TopicPartition
from tailrace.protocol.headers import read_request_header
from tailrace.protocol.messages import FetchRequest
from tailrace.protocol.primitives import Buffer, uvarint
from tailrace.protocol.request_kernels import Fetched, read_fetch
from tailrace.records.batch import CorruptBatch
from tailrace.replication.partition import Partition
from tailrace.waiting.purgatory import DelayedOperation

_TOPIC_IDS_FROM = 13
_ISOLATIONS = (Isolation.READ_UNCOMMITTED, Isolation.READ_COMMITTED)
# From the end of the topic to the length of the client's rack, there being one partition without tags.
_RACK = 36
_NO_RACK = 1
_END = bytes(3)  # tags of the partition, the topic, the response


@cache
def _response(topic_size: int, has_length: bool, length_size: int) -> Struct:
    """Correlation id, tags; no throttling, error or session; a topic of one partition, up to its records."""
    topic = f"B{topic_size}s" if has_length else f"{topic_size}s"
    return Struct(f">iBihiB{topic}BihqqqBi{length_size}s")


class QuickFetch:
    def __init__(self, services: Services) -> None:
        self.services = services
        self._codes = services.replies.errors_of(1)
        self._rights = rights_of(services.authorizer)
        self._selects = services.fetches.reader.select_replica is not None
        self._replicas = None if services.replication is None else QuickReplicaFetch(services)
        self.answer_generally = bind(handle, services)

    def handle(self, frame: Buffer, context: ConnectionContext, now_ms: int) -> bool:
        """Whether it was taken: answered, or left to wait. If not, nothing was done."""
        asked = read_fetch(frame)
        if asked is None:
            return self._replicas is not None and self._replicas.handle(frame, context, now_ms)
        version, _, wait_ms, least, most, level, start, stop, index, epoch, offset, partition_most = asked
        topic = bytes(frame[start:stop])
        services = self.services
        services.current_round.settle()
        if version >= _TOPIC_IDS_FROM:
            partition = services.partitions.of_topic(topic, index)
        else:
            partition = services.partitions.get(TopicPartition(topic.decode("utf-8", "replace"), index))
        most = min(most, partition_most, services.fetches.max_bytes)
        if partition is None or partition.leader is None or 0 <= epoch != partition.leader_epoch or most < 1:
            return False
        if self._rights is not None and not self._rights.allows(
            context.principal, context.client_host, Operation.READ, AclResource.TOPIC, partition.key.topic
        ):
            return False
        if self._selects and frame[stop + _RACK] != _NO_RACK and partition.leader.followers:
            return False
        marks = partition.log.placed_marks()
        bound = marks.bound(_ISOLATIONS[level])
        if offset == bound.offset and least == 1 and wait_ms > 0:
            partition.traffic.fetch_requests += 1
            place = bound if bound is marks.log_end and not level else None
            waiting = WaitingFetch(self, frame, context, asked, topic, partition, place, now_ms + wait_ms)
            services.purgatory.watch(waiting, (partition.key,))
            services.replies.parked(context, waiting)
            return True
        if not marks.log_start_offset <= offset < bound.offset:
            return False
        return self.answer(asked, topic, context, partition, marks, most)

    def answer(
        self,
        asked: Fetched,
        topic: bytes,
        context: ConnectionContext,
        partition: Partition,
        marks: Watermarks,
        most: int,
        place: LogPosition | None = None,
    ) -> bool:
        """Read and reply, if it is as simple as that. `place`: where the offset is, if that is known."""
        version, correlation_id, wait_ms, least, _, level, _, _, index, _, offset, _ = asked
        log = partition.log
        records: FileSlice | bytes | None = None
        has_aborted = 0
        try:
            if place is not None:
                segment, end = log.segments.active, marks.high_watermark
                if segment.base_offset == place.segment_base_offset == end.segment_base_offset:
                    records = FileSlice(segment.log, place.position, end.position - place.position)
                    if records.size > most:
                        records = None
                    elif records.size <= SMALL_READ_BYTES:
                        records = records.read()
            elif not level:
                records = read_small(log.segments, offset, most, marks.high_watermark, marks.log_end.offset)
            if records is None:
                found = read_log(partition.key, log.segments, marks, offset, most, _ISOLATIONS[level], True)
                records = found.slice
                if records is None or found.aborted:
                    return False
                has_aborted = 0 if found.aborted is None else 1
        except (KafkaError, CorruptBatch, OSError):
            return False
        size = len(records)
        if size < least and size < most and wait_ms > 0:
            return False
        traffic = partition.traffic
        traffic.fetch_requests += 1
        traffic.bytes_out += size
        self._codes[0] += 2  # the response's and the partition's
        length = uvarint(size + 1)
        end_offset, stable_offset = marks.high_watermark.offset, marks.last_stable.offset
        values = (2, index, 0, end_offset, stable_offset, marks.log_start_offset, has_aborted, -1, length)
        if version >= _TOPIC_IDS_FROM:
            head = _response(16, False, len(length)).pack(correlation_id, 0, 0, 0, 0, 2, topic, *values)
        else:
            layout = _response(len(topic), True, len(length))
            head = layout.pack(correlation_id, 0, 0, 0, 0, 2, len(topic) + 1, topic, *values)
        parts: list[Part] = [head + records + _END] if isinstance(records, bytes) else [head, records, _END]
        self.services.replies.put(Reply(context.connection_id, parts))
        return True


class WaitingFetch(DelayedOperation):
    """A fetch that stands at the end of its partition until there is more."""

    __slots__ = ("_asked", "_context", "_frame", "_leader", "_partition", "_place", "_quick", "_topic")

    def __init__(
        self,
        quick: QuickFetch,
        frame: Buffer,
        context: ConnectionContext,
        asked: Fetched,
        topic: bytes,
        partition: Partition,
        place: LogPosition | None,
        deadline_ms: int,
    ) -> None:
        super().__init__(deadline_ms)
        self._quick = quick
        self._frame = bytes(frame)  # which the server will write over
        self._context = context
        self._asked = asked
        self._topic = topic
        self._partition = partition
        self._leader = partition.leader
        self._place = place

    def try_complete(self, now_ms: int) -> bool:
        partition, asked, services = self._partition, self._asked, self._quick.services
        if partition.leader is self._leader and services.partitions.get(partition.key) is partition:
            marks = partition.log.placed_marks()
            bound = marks.bound(_ISOLATIONS[asked[5]])
            if bound.offset == asked[10]:
                return False
            if bound.offset > asked[10] and not services.throttling.is_on:
                most = min(asked[4], asked[11], services.fetches.max_bytes)
                if self._quick.answer(asked, self._topic, self._context, partition, marks, most, self._place):
                    return True
        self.expire(now_ms)
        return True

    def expire(self, now_ms: int) -> None:
        """Let the general way answer, at once."""
        header, position = read_request_header(self._frame)
        body, _ = FetchRequest.read(self._frame, header.api_version, position)
        body.max_wait_ms = 0
        self._quick.answer_generally(
            Request(
                self._context,
                header.api_key,
                header.api_version,
                header.correlation_id,
                header.client_id,
                body,
                now_ms,
                len(self._frame),
            ),
            now_ms,
        )
