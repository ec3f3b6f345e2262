"""IncrementalAlterConfigs (key 44), versions 0–1.

Behaviour
    Changes settings of resources one by one: SET, DELETE (back to the default), and for lists APPEND and SUBTRACT.
    Each resource is changed as a whole or not at all.
Not implemented
    loggers (resource type 8): a broker has no loggers that a client could set
"""

from __future__ import annotations

from tailrace.broker.authorizer import Operation
from tailrace.broker.broker import Broker
from tailrace.broker.config_authorization import refusal
from tailrace.broker.request_context import Request
from tailrace.metadata.control import NO_ERROR, ApiError
from tailrace.metadata.image import ConfigResource
from tailrace.protocol.messages import IncrementalAlterConfigsResponse


def handle(broker: Broker, request: Request, now_ms: int) -> IncrementalAlterConfigsResponse:
    def may_alter(resource: ConfigResource) -> ApiError:
        denied = refusal(broker, request, Operation.ALTER_CONFIGS, resource)
        return NO_ERROR if denied is None else ApiError(denied, None)

    return broker.controller.incremental_alter_configs(request.body, now_ms, may_alter=may_alter)
