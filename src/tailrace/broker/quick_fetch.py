"""QuickFetch: the Fetch request that comes most, answered without the objects of the general way.

A consumer's fetch of one partition, without a session, of which there is something to read at once. Everything else,
everything that has to wait and everything that is refused is left to `fetch/fetches.py`: the same request gets the same
answer, byte for byte, on either way.
"""

from __future__ import annotations

from functools import cache
from struct import Struct
from typing import TYPE_CHECKING

from tailrace.broker.request_context import ConnectionContext, Reply
from tailrace.log.watermarks import Isolation
from tailrace.model.errors import KafkaError
from tailrace.model.ids import TopicPartition
from tailrace.protocol.primitives import Buffer, uvarint
from tailrace.protocol.request_kernels import read_fetch
from tailrace.records.batch import CorruptBatch

if TYPE_CHECKING:
    from tailrace.broker.broker import Broker

_TOPIC_IDS_FROM = 13
_ISOLATIONS = (Isolation.READ_UNCOMMITTED, Isolation.READ_COMMITTED)
_END = bytes(3)  # tags of the partition, the topic, the response


@cache
def _response(topic_size: int, has_length: bool, length_size: int) -> Struct:
    """Correlation id, tags; no throttling, error or session; a topic of one partition, up to its records."""
    topic = f"B{topic_size}s" if has_length else f"{topic_size}s"
    return Struct(f">iBihiB{topic}BihqqqBi{length_size}s")


class QuickFetch:
    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._partitions = broker.partitions
        self._codes = broker.errors_of(1)

    def handle(self, frame: Buffer, context: ConnectionContext, now_ms: int) -> Reply | None:
        """The answer, with everything done that it says; None: nothing was done."""
        asked = read_fetch(frame)
        if asked is None:
            return None
        version, correlation_id, wait_ms, least, most, level, start, stop, index, epoch, offset, partition_most = asked
        topic = bytes(frame[start:stop])
        if version >= _TOPIC_IDS_FROM:
            partition = self._partitions.of_topic(topic, index)
        else:
            partition = self._partitions.get(TopicPartition(topic.decode("utf-8", "replace"), index))
        broker = self._broker
        most = min(most, broker.fetches.max_bytes)
        if (
            partition is None
            or partition.leader is None
            or 0 <= epoch != partition.leader_epoch
            or most < 0
            or partition_most < 0
        ):
            return None
        log = partition.log
        marks = log.snapshot_marks()
        isolation = _ISOLATIONS[level]
        if not marks.log_start_offset <= offset < marks.bound(isolation).offset:
            return None
        try:
            found = log.read(offset, min(partition_most, most), isolation, at_least_one=True)
        except (KafkaError, CorruptBatch, OSError):
            return None
        records = found.slice
        if records is None or found.aborted or (records.size < min(least, most) and wait_ms > 0):
            return None
        traffic = partition.traffic
        traffic.fetch_requests += 1
        traffic.bytes_out += records.size
        self._codes[0] += 2  # the response's and the partition's
        length = uvarint(records.size + 1)
        values = (
            2, index, 0, marks.high_watermark.offset, marks.last_stable.offset, marks.log_start_offset,
            0 if found.aborted is None else 1, -1, length,
        )  # fmt: skip
        if version >= _TOPIC_IDS_FROM:
            head = _response(16, False, len(length)).pack(correlation_id, 0, 0, 0, 0, 2, topic, *values)
        else:
            size = len(topic)
            layout = _response(size, True, len(length))
            head = layout.pack(correlation_id, 0, 0, 0, 0, 2, size + 1, topic, *values)
        return Reply(context.connection_id, [head, records, _END])
