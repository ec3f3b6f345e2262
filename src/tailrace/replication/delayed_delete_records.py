"""DelayedDeleteRecords: waits until every live replica has moved its log start, which moves the low watermark.

Each partition is decided when its low watermark reaches the requested offset, or when it is no longer led here. At the
deadline undecided partitions get REQUEST_TIMED_OUT: the leader has moved its start, and some follower has not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.model.ids import Offset, TopicPartition
from tailrace.protocol.messages import DeleteRecordsResponse
from tailrace.replication.hosted_partitions import HostedPartitions
from tailrace.waiting.purgatory import DelayedOperation

_NO_LOW_WATERMARK = -1


class DeletedPartition:
    """The part of a DeleteRecords request about one partition: the requested offset, and the response."""

    __slots__ = ("key", "required_offset", "response")

    def __init__(self, key: TopicPartition) -> None:
        self.key = key
        self.required_offset: Offset = -1
        self.response = DeleteRecordsResponse.DeleteRecordsPartitionResult(
            partition_index=key.partition, low_watermark=_NO_LOW_WATERMARK
        )

    def refuse(self, code: ErrorCode) -> None:
        self.response.error_code = code

    @property
    def is_done(self) -> bool:
        refused = self.response.error_code != ErrorCode.NONE
        return refused or self.response.low_watermark >= self.required_offset


def delete_on_leader(
    partitions: HostedPartitions, key: TopicPartition, offset: Offset, now_ms: int
) -> DeletedPartition:
    """Move the leader's log start. An error is noted in the response of the partition."""
    part = DeletedPartition(key)
    partition = None
    try:
        partition = partitions.find(key)
        part.required_offset = partition.delete_records(offset, now_ms)
        part.response.low_watermark = partition.low_watermark()
    except KafkaError as error:
        part.refuse(error.code)
    except OSError as error:
        assert partition is not None
        partitions.failed(partition, error)
        part.refuse(ErrorCode.KAFKA_STORAGE_ERROR)
    return part


class DelayedDeleteRecords(DelayedOperation):
    __slots__ = ("_answer", "_partitions", "_pending", "parts")

    def __init__(
        self,
        parts: Sequence[DeletedPartition],
        partitions: HostedPartitions,
        deadline_ms: int,
        answer: Callable[[DelayedDeleteRecords, int], None],
    ) -> None:
        """`answer(operation, now_ms)` is called once, when every part's response is final."""
        super().__init__(deadline_ms)
        self.parts = parts
        self._partitions = partitions
        self._answer = answer
        self._pending = [part for part in parts if part.response.error_code == ErrorCode.NONE]

    def keys(self) -> list[object]:
        return [part.key for part in self._pending]

    def try_complete(self, now_ms: int) -> bool:
        self._pending = [part for part in self._pending if not self._try_decide(part)]
        if self._pending:
            return False
        self._answer(self, now_ms)
        return True

    def _try_decide(self, part: DeletedPartition) -> bool:
        response = part.response
        partition = self._partitions.get(part.key)
        if partition is None or partition.leader is None:
            if partition is not None:
                part.refuse(ErrorCode.NOT_LEADER_OR_FOLLOWER)
            elif part.key in self._partitions.offline:
                part.refuse(ErrorCode.KAFKA_STORAGE_ERROR)
            else:
                part.refuse(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            response.low_watermark = _NO_LOW_WATERMARK
            return True
        low_watermark = partition.low_watermark()
        if low_watermark < part.required_offset:
            return False
        response.low_watermark = low_watermark
        return True

    def expire(self, now_ms: int) -> None:
        for part in self._pending:
            part.refuse(ErrorCode.REQUEST_TIMED_OUT)
        self._answer(self, now_ms)
