"""Operations on share group state, as calls of this broker's ShareCoordinator or as requests to another broker.

An operation concerns one partition. Operations of one kind and one group are sent in one request. The response has one
result for each partition.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple, Protocol, TypeVar

from tailrace.broker.shares.share_coordinator import ShareCoordinator
from tailrace.coordinator.runtime import Answer, Refuse
from tailrace.model.errors import ErrorCode
from tailrace.protocol.message import Message
from tailrace.protocol.messages import (
    DeleteShareGroupStateRequest,
    InitializeShareGroupStateRequest,
    ReadShareGroupStateRequest,
    ReadShareGroupStateSummaryRequest,
    WriteShareGroupStateRequest,
)
from tailrace.shares.state.persisted_state import PersistedState, SharePartitionKey, ShareWrite, state_batches

R_co = TypeVar("R_co", covariant=True)


class StateOperation(Protocol[R_co]):
    def ask(
        self, states: ShareCoordinator, key: SharePartitionKey, answer: Answer[R_co], refuse: Refuse, now_ms: int
    ) -> None: ...

    def part(self, partition: int) -> Any:
        """Return a partition's part of a request."""

    def topic(self, topic_id: bytes, parts: list[Any]) -> Any: ...

    def request(self, group_id: str, topics: list[Any]) -> Message: ...

    def result_of(self, result: Any) -> R_co:
        """Return the result from a partition's part of a response without an error."""


class Initialize(NamedTuple):
    state_epoch: int
    start_offset: int

    def ask(
        self, states: ShareCoordinator, key: SharePartitionKey, answer: Answer[ErrorCode], refuse: Refuse, now_ms: int
    ) -> None:
        states.initialize(key, self.state_epoch, self.start_offset, answer, refuse, now_ms)

    def part(self, partition: int) -> InitializeShareGroupStateRequest.PartitionData:
        return InitializeShareGroupStateRequest.PartitionData(partition=partition, **self._asdict())

    def topic(self, topic_id: bytes, parts: list[Any]) -> InitializeShareGroupStateRequest.InitializeStateData:
        return InitializeShareGroupStateRequest.InitializeStateData(topic_id=topic_id, partitions=parts)

    def request(self, group_id: str, topics: list[Any]) -> InitializeShareGroupStateRequest:
        return InitializeShareGroupStateRequest(group_id=group_id, topics=topics)

    def result_of(self, result: Any) -> ErrorCode:
        return ErrorCode.NONE


class Read(NamedTuple):
    leader_epoch: int

    def ask(
        self,
        states: ShareCoordinator,
        key: SharePartitionKey,
        answer: Answer[PersistedState],
        refuse: Refuse,
        now_ms: int,
    ) -> None:
        states.read(key, self.leader_epoch, answer, refuse, now_ms)

    def part(self, partition: int) -> ReadShareGroupStateRequest.PartitionData:
        return ReadShareGroupStateRequest.PartitionData(partition=partition, leader_epoch=self.leader_epoch)

    def topic(self, topic_id: bytes, parts: list[Any]) -> ReadShareGroupStateRequest.ReadStateData:
        return ReadShareGroupStateRequest.ReadStateData(topic_id=topic_id, partitions=parts)

    def request(self, group_id: str, topics: list[Any]) -> ReadShareGroupStateRequest:
        return ReadShareGroupStateRequest(group_id=group_id, topics=topics)

    def result_of(self, result: Any) -> PersistedState:
        return PersistedState(
            0, result.state_epoch, self.leader_epoch, result.start_offset, 0, state_batches(result.state_batches)
        )


class Write(NamedTuple):
    write: ShareWrite

    def ask(
        self, states: ShareCoordinator, key: SharePartitionKey, answer: Answer[ErrorCode], refuse: Refuse, now_ms: int
    ) -> None:
        states.write(key, self.write, answer, refuse, now_ms)

    def part(self, partition: int) -> WriteShareGroupStateRequest.PartitionData:
        batch = WriteShareGroupStateRequest.StateBatch
        return WriteShareGroupStateRequest.PartitionData(
            partition=partition,
            state_epoch=self.write.state_epoch,
            leader_epoch=self.write.leader_epoch,
            start_offset=self.write.start_offset,
            delivery_complete_count=self.write.delivery_complete_count,
            state_batches=[batch(**one._asdict()) for one in self.write.batches],
        )

    def topic(self, topic_id: bytes, parts: list[Any]) -> WriteShareGroupStateRequest.WriteStateData:
        return WriteShareGroupStateRequest.WriteStateData(topic_id=topic_id, partitions=parts)

    def request(self, group_id: str, topics: list[Any]) -> WriteShareGroupStateRequest:
        return WriteShareGroupStateRequest(group_id=group_id, topics=topics)

    def result_of(self, result: Any) -> ErrorCode:
        return ErrorCode.NONE

    def with_later(self, later: Write) -> Write | None:
        """Return both writes as one, or None if their leader epoch or state epoch differ."""
        ours, theirs = self.write, later.write
        if (ours.state_epoch, ours.leader_epoch) != (theirs.state_epoch, theirs.leader_epoch):
            return None
        return Write(theirs._replace(batches=ours.batches + theirs.batches))


class Summarize(NamedTuple):
    def ask(
        self,
        states: ShareCoordinator,
        key: SharePartitionKey,
        answer: Answer[PersistedState | None],
        refuse: Refuse,
        now_ms: int,
    ) -> None:
        states.read_summary(key, answer, refuse, now_ms)

    def part(self, partition: int) -> ReadShareGroupStateSummaryRequest.PartitionData:
        return ReadShareGroupStateSummaryRequest.PartitionData(partition=partition)

    def topic(self, topic_id: bytes, parts: list[Any]) -> ReadShareGroupStateSummaryRequest.ReadStateSummaryData:
        return ReadShareGroupStateSummaryRequest.ReadStateSummaryData(topic_id=topic_id, partitions=parts)

    def request(self, group_id: str, topics: list[Any]) -> ReadShareGroupStateSummaryRequest:
        return ReadShareGroupStateSummaryRequest(group_id=group_id, topics=topics)

    def result_of(self, result: Any) -> PersistedState | None:
        return PersistedState(
            0, result.state_epoch, result.leader_epoch, result.start_offset, result.delivery_complete_count
        )


class Delete(NamedTuple):
    def ask(
        self, states: ShareCoordinator, key: SharePartitionKey, answer: Answer[ErrorCode], refuse: Refuse, now_ms: int
    ) -> None:
        states.delete(key, answer, refuse, now_ms)

    def part(self, partition: int) -> DeleteShareGroupStateRequest.PartitionData:
        return DeleteShareGroupStateRequest.PartitionData(partition=partition)

    def topic(self, topic_id: bytes, parts: list[Any]) -> DeleteShareGroupStateRequest.DeleteStateData:
        return DeleteShareGroupStateRequest.DeleteStateData(topic_id=topic_id, partitions=parts)

    def request(self, group_id: str, topics: list[Any]) -> DeleteShareGroupStateRequest:
        return DeleteShareGroupStateRequest(group_id=group_id, topics=topics)

    def result_of(self, result: Any) -> ErrorCode:
        return ErrorCode.NONE


def request_of(group_id: str, asked: Iterable[tuple[SharePartitionKey, StateOperation[Any]]]) -> Message:
    """Return the request for operations of one kind and one group. There is at least one operation."""
    parts: dict[bytes, list[Any]] = {}
    for key, operation in asked:
        parts.setdefault(key.topic_id, []).append(operation.part(key.partition))
    return operation.request(group_id, [operation.topic(topic_id, found) for topic_id, found in parts.items()])
