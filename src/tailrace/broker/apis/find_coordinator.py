"""FindCoordinator (key 10), versions 0–6.

Behaviour
    Names the broker that coordinates a group or a transactional id.
Version notes
    1   transactional ids as well as groups
    4   several keys at once
    6   share groups
Not implemented
    coordinators themselves: every key is answered with COORDINATOR_NOT_AVAILABLE, which clients take as "not yet"
"""

from __future__ import annotations

from tailrace.broker.broker import Broker
from tailrace.broker.request_context import Request
from tailrace.model.errors import ErrorCode
from tailrace.protocol.messages import FindCoordinatorRequest, FindCoordinatorResponse

_KEY_TYPES = {0: 0, 1: 1, 2: 6}  # group, transactional id, share group: the first version that knows it


def handle(broker: Broker, request: Request, now_ms: int) -> FindCoordinatorResponse:
    body: FindCoordinatorRequest = request.body
    known = request.version >= _KEY_TYPES.get(body.key_type, 2**15)
    error = ErrorCode.COORDINATOR_NOT_AVAILABLE if known else ErrorCode.INVALID_REQUEST
    message = "there is no coordinator yet" if known else f"there is no key type {body.key_type}"
    if request.version < 4:
        return FindCoordinatorResponse(error_code=error, error_message=message, node_id=-1, host="", port=-1)
    return FindCoordinatorResponse(
        coordinators=[
            FindCoordinatorResponse.Coordinator(
                key=key, node_id=-1, host="", port=-1, error_code=error, error_message=message
            )
            for key in body.coordinator_keys
        ]
    )
