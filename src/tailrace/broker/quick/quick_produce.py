"""QuickProduce: the Produce request that comes most, answered without the objects of the general way.

One batch for one partition that is led here, from a client that may write there and has no quota. Where there are
other replicas, acks=all waits for them (`waiting_produce.py`). Everything else, and everything that is refused, is left
to `apis/produce.py`: the same request gets the same answer, byte for byte, on either way.

What comes together for one partition is written together (`log/append.py`). A request that is taken has its
offset; it is carried out and answered when the round ends, or before a request that goes another way.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from struct import Struct
from typing import TypeAlias

from tailrace.broker.quick.waiting_produce import Run, WaitingProduce
from tailrace.broker.request_context import ConnectionContext, Reply
from tailrace.broker.security.authorizer import AclResource, Operation, rights_of
from tailrace.broker.services import Services
from tailrace.log.append import AppendResult
from tailrace.model.errors import KafkaError
from tailrace.model.ids import TopicPartition
from tailrace.protocol.primitives import Buffer
from tailrace.protocol.request_kernels import read_produce
from tailrace.records.batch import CODEC_MASK, CODEC_POSITION
from tailrace.records.checked_records import LOOP_COST_MAX
from tailrace.replication.partition import Partition

_TOPIC_IDS_FROM = 13
_NO_OFFSET = bytes(8)
_TIMEOUT = Struct(">i")
_REST = (1, 0, 0, 0, 0, 0)  # no refused records, no message, tags twice, no throttling, tags


@cache
def _response(topic_size: int, has_length: bool) -> Struct:
    """Correlation id, tags; a topic of one partition, which has neither error nor leader to tell; no throttling."""
    topic = f"B{topic_size}s" if has_length else f"{topic_size}s"
    return Struct(f">iBB{topic}BihqqqBBBBiB")


_BY_ID = _response(16, False).pack


# A request whose batch has been placed, and where: its answer, None if it wants none, what it takes to do it another
# way, and what it waits as, if it waits for other replicas.
Taken: TypeAlias = tuple[
    Partition, AppendResult, bytes | None, Buffer, ConnectionContext, memoryview, WaitingProduce | None
]


class QuickProduce:
    def __init__(
        self,
        services: Services,
        runs: dict[int, Run],
        handle_generally: Callable[[Buffer, ConnectionContext, int], None],
    ) -> None:
        self._services = services
        self._runs = runs
        self._handle_generally = handle_generally
        self._replies = services.replies
        self._round = services.current_round
        self._partitions = services.partitions
        self._codes = services.replies.errors_of(0)
        self._rights = rights_of(services.authorizer)
        self._taken: list[Taken] = []  # in the order in which they came
        self._partitions_taken: dict[Partition, None] = {}  # what they are for
        self._now_ms = 0

    def handle(self, frame: Buffer, context: ConnectionContext, now_ms: int) -> bool:
        """Whether it is carried out, now or when the round ends. If not, nothing was done."""
        asked = read_produce(frame)
        if asked is None:
            return False
        version, correlation_id, acks, topic_start, topic_stop, index, start, stop = asked
        topic = bytes(frame[topic_start:topic_stop])
        if version >= _TOPIC_IDS_FROM:
            partition = self._partitions.of_topic(topic, index)
        else:
            partition = self._partitions.get(TopicPartition(topic.decode("utf-8", "replace"), index))
        run = self._runs.get(context.connection_id)
        if (
            partition is None
            or (run is not None and (run.partition is not partition or acks != -1))
            or (leader := partition.leader) is None
            or not leader.isr.committed
            or acks not in (-1, 0, 1)
            or (leader.followers and acks == -1 and leader.is_under_min_isr)
            or (
                self._rights is not None
                and not self._rights.allows(
                    context.principal, context.client_host, Operation.WRITE, AclResource.TOPIC, partition.key.topic
                )
            )
        ):
            return False
        records, log = memoryview(frame)[start:stop], partition.log
        if (
            not log.config.keeps_plain_batches
            or records[CODEC_POSITION] & CODEC_MASK
            or len(records) > LOOP_COST_MAX
            or records.readonly
        ):
            return False
        try:
            placed = log.place(records, partition.leader_epoch, now_ms)
        except KafkaError:
            return False
        except OSError:
            self.settle(has_failed=True)
            return False
        offset = placed.first_offset
        answer = None
        if acks:
            values = (2, index, 0, offset, placed.log_append_time_ms, placed.log_start_offset, *_REST)
            if version >= _TOPIC_IDS_FROM:
                answer = _BY_ID(correlation_id, 0, 2, topic, *values)
            else:
                size = len(topic)
                answer = _response(size, True).pack(correlation_id, 0, 2, size + 1, topic, *values)
        waiting = None
        if acks == -1 and leader.followers and answer is not None:
            run = self._runs.get(context.connection_id)
            if run is None:
                run = Run(self._services, self._runs, context, partition, self.handle, self._handle_generally)
                self._runs[context.connection_id] = run
            # The timeout stands in front of the one topic, whose name has its length with it.
            (timeout_ms,) = _TIMEOUT.unpack_from(frame, topic_start - (5 if version >= _TOPIC_IDS_FROM else 6))
            run.count += 1
            run.deadline_ms = max(run.deadline_ms, now_ms + timeout_ms)
            head, offsets = bytes(frame[:topic_start]), (offset, placed.last_offset + 1)
            waiting = WaitingProduce(self._services, context, head, run, offsets, answer, run.deadline_ms)
        self._taken.append((partition, placed, answer, frame, context, records, waiting))
        self._partitions_taken[partition] = None
        self._now_ms = now_ms
        self._round.collect(self)
        return True

    def settle(self, has_failed: bool = False) -> None:
        """Write what was taken, a partition at a time, and answer in order. `has_failed`: one write failed already."""
        now_ms = self._now_ms
        taken, self._taken = self._taken, []
        partitions, self._partitions_taken = self._partitions_taken, {}
        done = 0
        try:
            for partition in partitions:
                has_failed |= not self._write(partition, now_ms)
            # All are looked at before one of them is appended another way, at the same offset.
            lost = [self._is_lost(*one[:2]) for one in taken] if has_failed else [False] * len(taken)
            for one, is_lost in zip(taken, lost, strict=True):
                self._answer(one, is_lost, now_ms)
                done += 1
        except Exception as error:
            for one in taken[done:]:
                self._replies.close(one[4].connection_id)
            self._services.internal_errors.survive("a group of appends", error, now_ms)

    def _is_lost(self, partition: Partition, placed: AppendResult) -> bool:
        """Return True if a placed batch could not be written, or its partition is offline."""
        is_written = placed.last_offset < partition.log.log_end_offset
        return not is_written or self._partitions.get(partition.key) is not partition

    def _answer(self, taken: Taken, is_lost: bool, now_ms: int) -> None:
        partition, placed, answer, frame, context, records, waiting = taken
        if is_lost:
            if waiting is not None and not waiting.leaves_run():
                # Its answer would overtake those before it: the client asks again, elsewhere.
                self._replies.close(context.connection_id)
                return
            records[:8] = _NO_OFFSET
            self._handle_generally(frame, context, now_ms)
            return
        traffic = partition.traffic
        traffic.produce_requests += 1
        traffic.bytes_in += len(records)
        traffic.messages_in += placed.last_offset - placed.first_offset + 1
        if waiting is not None:
            if not self._services.purgatory.try_complete_or_watch(waiting, (partition.key,), now_ms):
                self._replies.parked(context, waiting)
            return
        if answer is not None:
            self._codes[0] += 1
        self._replies.put(Reply(context.connection_id, None if answer is None else [answer]))

    def _write(self, partition: Partition, now_ms: int) -> bool:
        end = partition.log.log_end_offset
        try:
            partition.log.write_placed(now_ms)
        except OSError as error:
            if partition.log.log_end_offset > end:
                self._partitions.failed(partition, error)  # written, but the flush failed: it must not be written again
            return False
        if partition.leader is not None:
            partition.leader.advance_high_watermark(now_ms)
        self._round.appended(partition.key, now_ms)
        return True
