"""IncrementalAlterConfigs (key 44), versions 0–1.

Behaviour
    Changes single settings of resources: SET, DELETE (back to the default), and for lists APPEND and SUBTRACT. The
    changes of a resource are applied all or none. Log levels are changed in this process and lost at a restart.
"""

from __future__ import annotations

from functools import partial

from tailrace.broker.cluster.config_forwarding import forward_alter_configs
from tailrace.broker.cluster.forwarding import Forwarding
from tailrace.broker.config.broker_config import BrokerConfig
from tailrace.broker.replies import Replies
from tailrace.broker.requests.configs.config_authorization import refusal
from tailrace.broker.requests.configs.loggers import alter_loggers
from tailrace.broker.requests.request_context import Request
from tailrace.broker.security.authorizer import Operation
from tailrace.broker.security.permissions import Permissions
from tailrace.metadata.controller.control_state import NO_ERROR, ApiError
from tailrace.metadata.controller.controller import Controller
from tailrace.metadata.controller.local_controller import LocalController
from tailrace.metadata.image.image import ConfigResource, ResourceType
from tailrace.model.errors import KafkaError
from tailrace.protocol.messages import IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse

Resource = IncrementalAlterConfigsRequest.AlterConfigsResource
Result = IncrementalAlterConfigsResponse.AlterConfigsResourceResponse


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
) -> IncrementalAlterConfigsResponse | None:
    if forwarding is not None:
        forward_alter_configs(
            request,
            now_ms,
            partial(_alter_loggers, request, controller=controller, permissions=permissions),
            config=config,
            controller=controller,
            forwarding=forwarding,
            replies=replies,
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
) -> IncrementalAlterConfigsResponse:
    def may_alter(resource: ConfigResource) -> ApiError:
        denied = refusal(request, Operation.ALTER_CONFIGS, resource, permissions=permissions)
        return NO_ERROR if denied is None else denied

    body: IncrementalAlterConfigsRequest = request.body
    loggers = [one for one in body.resources if one.resource_type == ResourceType.BROKER_LOGGER]
    body.resources = [one for one in body.resources if one.resource_type != ResourceType.BROKER_LOGGER]
    response = local_controller.incremental_alter_configs(
        body, now_ms, may_alter=may_alter, is_at_controller=is_at_controller
    )
    response.responses = [
        *response.responses,
        *(_alter_loggers(request, one, controller=local_controller, permissions=permissions) for one in loggers),
    ]
    return response


def _alter_loggers(request: Request, resource: Resource, *, controller: Controller, permissions: Permissions) -> Result:
    result = Result(resource_type=resource.resource_type, resource_name=resource.resource_name, error_message=None)
    asked = ConfigResource(resource.resource_type, resource.resource_name)
    denied = refusal(request, Operation.ALTER_CONFIGS, asked, permissions=permissions)
    if denied is not None:
        result.error_code = denied.code
        return result
    try:
        alter_loggers(
            controller.node_id, resource.resource_name, resource.configs, validate_only=request.body.validate_only
        )
    except KafkaError as error:
        result.error_code, result.error_message = error.code, str(error)
    return result
