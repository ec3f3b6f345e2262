"""Requests about share groups' state, which all have the same form: partitions of topics, each answered by itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeAlias, TypeVar

from tailrace.broker.handling.pending_answer import PendingAnswer
from tailrace.broker.replies import Replies
from tailrace.broker.requests.groups.merged_parts import MergedParts
from tailrace.broker.requests.request_context import Request
from tailrace.broker.security.authorizer import AclResource, Operation
from tailrace.broker.security.permissions import Permissions
from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.shares.state.share_state_coordinator import SharePartitionKey

Told: TypeAlias = dict[str, Any]  # fields of what is told of a partition
Take: TypeAlias = Callable[["Told | KafkaError", int], None]

P = TypeVar("P", bound="_AskedPartition")
R = TypeVar("R")


class _AskedPartition(Protocol):
    partition: int


class _AskedTopic(Protocol[P]):
    topic_id: bytes
    partitions: list[P]


def answer_partitions(
    request: Request,
    topics: Sequence[_AskedTopic[P]],
    ask: Callable[[SharePartitionKey, P, Take, int], None],
    result: Callable[[bytes, list[Told]], Any],
    response: Callable[..., R],
    now_ms: int,
    *,
    permissions: Permissions,
    replies: Replies,
) -> R | None:
    """`ask` has a partition's part of the answer taken, or an error; `result` is a topic's part."""
    group_id: str = request.body.group_id
    wanted = {
        SharePartitionKey(group_id, bytes(topic.topic_id), one.partition): one
        for topic in topics
        for one in topic.partitions
    }
    if not group_id or not wanted:
        return response(results=[])
    answer = PendingAnswer(replies, request)

    def finish(parts: list[Told | KafkaError], now_ms: int) -> None:
        told: dict[bytes, list[Told]] = {}
        for key, part in zip(wanted, parts, strict=True):
            if isinstance(part, KafkaError):
                part = {"error_code": part.code, "error_message": str(part)}
            told.setdefault(key.topic_id, []).append({"partition": key.partition, **part})
        answer(response(results=[result(topic_id, partitions) for topic_id, partitions in told.items()]), now_ms)

    merged: MergedParts[Told | KafkaError] = MergedParts(len(wanted), finish)
    may = permissions.allows(request, Operation.CLUSTER_ACTION, AclResource.CLUSTER, "kafka-cluster")
    for index, (key, asked) in enumerate(wanted.items()):
        take = merged.part(index)
        if may:
            ask(key, asked, take, now_ms)
        else:
            take(KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED), now_ms)
    return None


def fine(take: Take) -> Callable[[ErrorCode, int], None]:
    """What takes the answer to a change that has been made."""
    return lambda _, now_ms: take({}, now_ms)
