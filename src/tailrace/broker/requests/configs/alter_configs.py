"""AlterConfigs (key 33), versions 0–2.

Behaviour
    Replaces all settings of resources: a setting that is not named returns to its default. The changes of a resource
    are applied all or none. Clients should use IncrementalAlterConfigs instead.
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
    assert local_controller is not None, "a broker that does not forward has a local controller"
    return alter(request, now_ms, local_controller, permissions)


def alter(
    request: Request,
    now_ms: int,
    local_controller: LocalController,
    permissions: Permissions,
    *,
    is_at_controller: bool = False,
) -> AlterConfigsResponse:
    def may_alter(resource: ConfigResource) -> ApiError:
        if resource.type == ResourceType.BROKER_LOGGER:
            return NO_ERROR  # the controller refuses loggers for every client
        denied = refusal(request, Operation.ALTER_CONFIGS, resource, permissions=permissions)
        return NO_ERROR if denied is None else denied

    return local_controller.alter_configs(request.body, now_ms, may_alter=may_alter, is_at_controller=is_at_controller)
