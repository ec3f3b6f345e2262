"""DeleteGroups (key 42), versions 0–2.

Behaviour
    Forgets groups without members, and the offsets they have committed. Each group has an error of its own.
"""

from __future__ import annotations

from collections.abc import Callable

from tailrace.broker.authorizer import AclResource, Operation
from tailrace.broker.broker import Broker
from tailrace.broker.gathering import Gathering
from tailrace.broker.pending_answer import PendingAnswer
from tailrace.broker.request_context import Request
from tailrace.model.errors import ErrorCode
from tailrace.protocol.messages import DeleteGroupsRequest, DeleteGroupsResponse


def handle(broker: Broker, request: Request, now_ms: int) -> None:
    body: DeleteGroupsRequest = request.body
    names = list(dict.fromkeys(body.groups_names))
    answer = PendingAnswer(broker, request)

    def finish(codes: list[ErrorCode], now_ms: int) -> None:
        results = [
            DeleteGroupsResponse.DeletableGroupResult(group_id=name, error_code=code)
            for name, code in zip(names, codes, strict=True)
        ]
        answer(DeleteGroupsResponse(results=results), now_ms)

    gathering: Gathering[ErrorCode] = Gathering(len(names), finish)
    for index, name in enumerate(names):
        _delete(broker, request, name, gathering.part(index), now_ms)
    gathering.begin(now_ms)


def _delete(broker: Broker, request: Request, name: str, take: Callable[[ErrorCode, int], None], now_ms: int) -> None:
    if not broker.allows(request, Operation.DELETE, AclResource.GROUP, name):
        take(ErrorCode.GROUP_AUTHORIZATION_FAILED, now_ms)
        return
    broker.groups.write(
        name,
        lambda shard: shard.delete_groups([name]),
        lambda codes, now_ms: take(codes[0], now_ms),
        lambda error, now_ms: take(error.code, now_ms),
        now_ms,
    )
