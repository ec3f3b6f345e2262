"""DelayedRemoteListOffsets: lookups by time that wait for the remote store.

A partition whose lookup has not ended at the deadline gets REQUEST_TIMED_OUT. The deadline is that of the request, from
version 10 on, or `remote.list.offsets.request.timeout.ms`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import NamedTuple

from tailrace.broker.storage.remote.remote_reads import TimeAnswer
from tailrace.model.errors import ErrorCode
from tailrace.model.ids import TopicPartition
from tailrace.protocol.messages import ListOffsetsResponse
from tailrace.replication.partition import Partition
from tailrace.waiting.purgatory import DelayedOperation

_TIMED_OUT = TimeAnswer(ErrorCode.REQUEST_TIMED_OUT)


class RemoteLookup(NamedTuple):
    """A partition whose record is searched in the remote store first."""

    partition: Partition
    answer: ListOffsetsResponse.ListOffsetsPartitionResponse
    target: int

    @property
    def key(self) -> TopicPartition:
        return self.partition.key


class DelayedRemoteListOffsets(DelayedOperation):
    __slots__ = ("_ended", "_expired", "_lookups", "_polls")

    def __init__(
        self,
        lookups: Sequence[RemoteLookup],
        begin: Callable[[TopicPartition, int, int, int], Callable[[], TimeAnswer | None]],
        expired: Callable[[int], None],
        timeout_ms: int,
        ended: Callable[[Sequence[tuple[RemoteLookup, TimeAnswer]], int], None],
        now_ms: int,
    ) -> None:
        """Begin the lookups with `begin(partition, time, first offset, now_ms)`. `ended` is called once, and
        `expired` before it with the number of lookups that have not ended in time."""
        super().__init__(now_ms + timeout_ms)
        self._lookups = lookups
        self._ended = ended
        self._expired = expired
        self._polls = [begin(one.key, one.target, one.partition.log.log_start_offset, now_ms) for one in lookups]

    def keys(self) -> list[Hashable]:
        return [one.key for one in self._lookups]

    def try_complete(self, now_ms: int) -> bool:
        answers = [poll() for poll in self._polls]
        if any(answer is None for answer in answers):
            return False
        self._finish(answers, now_ms)
        return True

    def expire(self, now_ms: int) -> None:
        answers = [poll() for poll in self._polls]
        self._expired(sum(answer is None for answer in answers))
        self._finish(answers, now_ms)

    def _finish(self, answers: Sequence[TimeAnswer | None], now_ms: int) -> None:
        ended = zip(self._lookups, answers, strict=True)
        self._ended([(lookup, answer or _TIMED_OUT) for lookup, answer in ended], now_ms)
