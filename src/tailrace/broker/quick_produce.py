"""QuickProduce: the Produce request that comes most, answered without the objects of the general way.

One batch for one partition that is led here and has no other replica, from a client that needs no permission and has no
quota. Everything else, and everything that is refused, is left to `apis/produce.py`: the same request gets the same
answer, byte for byte, on either way.
"""

from __future__ import annotations

from functools import cache
from struct import Struct
from typing import TYPE_CHECKING

from tailrace.broker.request_context import ConnectionContext, Reply
from tailrace.model.errors import KafkaError
from tailrace.model.ids import TopicPartition
from tailrace.protocol.primitives import Buffer
from tailrace.protocol.request_kernels import read_produce

if TYPE_CHECKING:
    from tailrace.broker.broker import Broker

_TOPIC_IDS_FROM = 13
_NO_OFFSET = bytes(8)
_REST = (1, 0, 0, 0, 0, 0)  # no refused records, no message, tags twice, no throttling, tags


@cache
def _response(topic_size: int, has_length: bool) -> Struct:
    """Correlation id, tags; a topic of one partition, which has neither error nor leader to tell; no throttling."""
    topic = f"B{topic_size}s" if has_length else f"{topic_size}s"
    return Struct(f">iBB{topic}BihqqqBBBBiB")


_BY_ID = _response(16, False).pack


class QuickProduce:
    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._partitions = broker.partitions
        self._codes = broker.errors_of(0)

    def handle(self, frame: Buffer, context: ConnectionContext, now_ms: int) -> bool:
        """Whether it was carried out and answered. If not, nothing was done."""
        asked = read_produce(frame)
        if asked is None:
            return False
        version, correlation_id, acks, topic_start, topic_stop, index, start, stop = asked
        topic = bytes(frame[topic_start:topic_stop])
        if version >= _TOPIC_IDS_FROM:
            partition = self._partitions.of_topic(topic, index)
        else:
            partition = self._partitions.get(TopicPartition(topic.decode("utf-8", "replace"), index))
        if (
            partition is None
            or (leader := partition.leader) is None
            or leader.followers
            or not leader.isr.committed
            or acks not in (-1, 0, 1)
        ):
            return False
        broker, log = self._broker, partition.log
        broker.publisher.now_ms = now_ms
        records = memoryview(frame)[start:stop]
        try:
            result = log.append_as_leader(records, leader_epoch=partition.leader_epoch, now_ms=now_ms)
        except (KafkaError, OSError):
            if not records.readonly:
                records[:8] = _NO_OFFSET  # an offset may have been given before the refusal
            return False
        log.advance_high_watermark(log.marks.log_end.offset)  # there is nobody to wait for
        traffic = partition.traffic
        traffic.produce_requests += 1
        traffic.bytes_in += stop - start
        traffic.messages_in += result.last_offset - result.first_offset + 1
        broker.appended(partition.key, now_ms)
        if acks == 0:
            broker.put(Reply(context.connection_id, None))
            return True
        self._codes[0] += 1
        values = (2, index, 0, result.first_offset, result.log_append_time_ms, result.log_start_offset, *_REST)
        if version >= _TOPIC_IDS_FROM:
            answer = _BY_ID(correlation_id, 0, 2, topic, *values)
        else:
            size = len(topic)
            answer = _response(size, True).pack(correlation_id, 0, 2, size + 1, topic, *values)
        broker.put(Reply(context.connection_id, [answer]))
        return True
