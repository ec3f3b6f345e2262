"""Common code of the handlers for share group state. All these requests list partitions, each with its own result."""

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
from tailrace.shares.state.persisted_state import SharePartitionKey

ResultFields: TypeAlias = dict[str, Any]  # the fields of a partition's result
OnResult: TypeAlias = Callable[["ResultFields | KafkaError", int], None]

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
    handle_partition: Callable[[SharePartitionKey, P, OnResult, int], None],
    result: Callable[[bytes, list[ResultFields]], Any],
    response: Callable[..., R],
    now_ms: int,
    *,
    permissions: Permissions,
    replies: Replies,
) -> R | None:
    """Handle each partition of a request, and respond when all partitions have their results.

    `handle_partition` passes the fields of the partition's result, or an error, to its callback `on_result`. `result`
    builds a topic's part of the response.
    """
    group_id: str = request.body.group_id
    wanted = {
        SharePartitionKey(group_id, bytes(topic.topic_id), one.partition): one
        for topic in topics
        for one in topic.partitions
    }
    if not group_id or not wanted:
        return response(results=[])
    answer = PendingAnswer(replies, request)

    def finish(parts: list[ResultFields | KafkaError], now_ms: int) -> None:
        by_topic: dict[bytes, list[ResultFields]] = {}
        for key, part in zip(wanted, parts, strict=True):
            if isinstance(part, KafkaError):
                part = {"error_code": part.code, "error_message": str(part)}
            by_topic.setdefault(key.topic_id, []).append({"partition": key.partition, **part})
        answer(response(results=[result(topic_id, partitions) for topic_id, partitions in by_topic.items()]), now_ms)

    merged: MergedParts[ResultFields | KafkaError] = MergedParts(len(wanted), finish)
    may = permissions.allows(request, Operation.CLUSTER_ACTION, AclResource.CLUSTER, "kafka-cluster")
    for index, (key, asked) in enumerate(wanted.items()):
        on_result = merged.part(index)
        if may:
            handle_partition(key, asked, on_result, now_ms)
        else:
            on_result(KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED), now_ms)
    return None


def on_success(on_result: OnResult) -> Callable[[ErrorCode, int], None]:
    """Return a callback that reports the success of a change."""
    return lambda _, now_ms: on_result({}, now_ms)
