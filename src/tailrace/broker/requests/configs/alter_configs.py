"""AlterConfigs (key 33), versions 0–2.

Behaviour
    Gives resources exactly the settings that are named: what is not named goes back to its default. Each resource is
    changed as a whole or not at all. IncrementalAlterConfigs is what clients should use.
"""

from __future__ import annotations

from tailrace.broker.cluster.config_forwarding import forward_alter_configs
from tailrace.broker.cluster.forwarding import Forwarding
from tailrace.broker.config.broker_config import BrokerConfig
from tailrace.broker.replies import Replies
from tailrace.broker.requests.configs.config_authorization import refusal
from tailrace.broker.requests.request_context import Request
from tailrace.broker.security.authorizer import Operation
from tailrace.broker.security.permissions import Permissions
from tailrace.metadata.controller.control_state import NO_ERROR, ApiError
from tailrace.metadata.controller.controller import Controller
from tailrace.metadata.controller.local_controller import LocalController
from tailrace.metadata.image.image import ConfigResource, ResourceType
from tailrace.protocol.messages import AlterConfigsResponse


def handle(
    request: Request,
    now_ms: int,
    *,
    config: BrokerConfig,
    controller: Controller,
    forwarding: Forwarding | None,
    local_controller: LocalController | None,
    permissions: Permissions,
    replies: Replies,
) -> AlterConfigsResponse | None:
    if forwarding is not None:
        forward_alter_configs(
            request, now_ms, config=config, controller=controller, forwarding=forwarding, replies=replies
        )
        return None

    def may_alter(resource: ConfigResource) -> ApiError:
        if resource.type == ResourceType.BROKER_LOGGER:
            return NO_ERROR  # nobody may, as is told next
        denied = refusal(request, Operation.ALTER_CONFIGS, resource, permissions=permissions)
        return NO_ERROR if denied is None else denied

    assert local_controller is not None, "without controllers elsewhere, there is one here"
    return local_controller.alter_configs(request.body, now_ms, may_alter=may_alter)
