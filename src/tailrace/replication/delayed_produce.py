"""DelayedProduce: acks=all waits until the high watermark has passed the appended records.

The response is sent when each partition with appended records is decided:

    Case A    the partition is no longer hosted here, or offline: that error
    Case B    it is no longer led here: NOT_LEADER_OR_FOLLOWER
    Case C.1  the high watermark has passed the records, but the ISR has shrunk below min.insync.replicas since:
              NOT_ENOUGH_REPLICAS_AFTER_APPEND
    Case C.2  it has passed them: no error

At the deadline undecided partitions get REQUEST_TIMED_OUT: the records are in the leader's log and may yet be
committed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tailrace.model.errors import ErrorCode
from tailrace.model.ids import TopicPartition
from tailrace.replication.hosted_partitions import HostedPartitions
from tailrace.replication.produce import ProducePart
from tailrace.waiting.purgatory import DelayedOperation


class DelayedProduce(DelayedOperation):
    __slots__ = ("_answer", "_partitions", "_pending", "parts")

    def __init__(
        self,
        parts: Sequence[ProducePart],
        partitions: HostedPartitions,
        deadline_ms: int,
        answer: Callable[[DelayedProduce, int], None],
    ) -> None:
        """`answer(operation, now_ms)` is called once, when every part's response has its final error code."""
        super().__init__(deadline_ms)
        self.parts = parts
        self._partitions = partitions
        self._answer = answer
        self._pending: dict[TopicPartition, list[ProducePart]] = {}  # the undecided parts by partition
        for part in parts:
            if part.is_appended:
                self._pending.setdefault(part.key, []).append(part)

    def keys(self) -> list[object]:
        """Return the keys under which the purgatory watches the operation."""
        return list(self._pending)

    def facts(self) -> dict[str, Any]:
        return {"partitions": len(self.parts), "undecided": sum(map(len, self._pending.values()))}

    def try_complete(self, now_ms: int) -> bool:
        if self.woken_by is None:
            for key in list(self._pending):
                self._try_decide(key)
        elif self.woken_by in self._pending:  # the others are woken themselves: a request may have thousands of parts
            self._try_decide(self.woken_by)
        if self._pending:
            return False
        self._answer(self, now_ms)
        return True

    def _try_decide(self, key: Any) -> None:
        undecided = [part for part in self._pending[key] if not try_decide(part, self._partitions)]
        if undecided:
            self._pending[key] = undecided
        else:
            del self._pending[key]

    def expire(self, now_ms: int) -> None:
        for parts in self._pending.values():
            for part in parts:
                part.refuse(ErrorCode.REQUEST_TIMED_OUT)
        self._answer(self, now_ms)


def try_decide(part: ProducePart, partitions: HostedPartitions) -> bool:
    """Decide a part that was appended, with its error, by the cases A to C. Return False if it has to wait."""
    partition = partitions.get(part.key)
    if partition is None:  # Case A
        part.refuse(partitions.error_of(part.key))
        return True
    error = partition.acks_error(part.required_offset)
    if error is None:
        return False
    if error:
        part.refuse(error)  # Case B or C.1
    return True
