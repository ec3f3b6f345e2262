"""AlterConfigs (key 33), versions 0–2.

Behaviour
    Gives resources exactly the settings that are named: what is not named goes back to its default. Each resource is
    changed as a whole or not at all. IncrementalAlterConfigs is what clients should use.
"""

from __future__ import annotations

from tailrace.broker.broker import Broker
from tailrace.broker.cluster.config_forwarding import forward_alter_configs
from tailrace.broker.request_context import Request
from tailrace.broker.requests.configs.config_authorization import refusal
from tailrace.broker.security.authorizer import Operation
from tailrace.metadata.controller.control import NO_ERROR, ApiError
from tailrace.metadata.image.image import ConfigResource, ResourceType
from tailrace.protocol.messages import AlterConfigsResponse


def handle(broker: Broker, request: Request, now_ms: int) -> AlterConfigsResponse | None:
    if broker.forwarding is not None:
        forward_alter_configs(broker, request, now_ms)
        return None

    def may_alter(resource: ConfigResource) -> ApiError:
        if resource.type == ResourceType.BROKER_LOGGER:
            return NO_ERROR  # nobody may, as is told next
        denied = refusal(broker, request, Operation.ALTER_CONFIGS, resource)
        return NO_ERROR if denied is None else denied

    return broker.local_controller.alter_configs(request.body, now_ms, may_alter=may_alter)
