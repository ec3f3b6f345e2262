"""IncrementalAlterConfigs (key 44), versions 0–1.

Behaviour
    Changes settings of resources one by one: SET, DELETE (back to the default), and for lists APPEND and SUBTRACT.
    Each resource is changed as a whole or not at all. The levels of loggers are this process's and are not kept.
"""

from __future__ import annotations

from functools import partial

from tailrace.broker.broker import Broker
from tailrace.broker.cluster.config_forwarding import forward_alter_configs
from tailrace.broker.request_context import Request
from tailrace.broker.requests.configs.config_authorization import refusal
from tailrace.broker.requests.configs.loggers import alter_loggers
from tailrace.broker.security.authorizer import Operation
from tailrace.metadata.controller.control import NO_ERROR, ApiError
from tailrace.metadata.image.image import ConfigResource, ResourceType
from tailrace.model.errors import KafkaError
from tailrace.protocol.messages import IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse

Resource = IncrementalAlterConfigsRequest.AlterConfigsResource
Result = IncrementalAlterConfigsResponse.AlterConfigsResourceResponse


def handle(broker: Broker, request: Request, now_ms: int) -> IncrementalAlterConfigsResponse | None:
    if broker.forwarding is not None:
        forward_alter_configs(broker, request, now_ms, partial(_alter_loggers, broker, request))
        return None

    def may_alter(resource: ConfigResource) -> ApiError:
        denied = refusal(broker, request, Operation.ALTER_CONFIGS, resource)
        return NO_ERROR if denied is None else denied

    body: IncrementalAlterConfigsRequest = request.body
    loggers = [one for one in body.resources if one.resource_type == ResourceType.BROKER_LOGGER]
    body.resources = [one for one in body.resources if one.resource_type != ResourceType.BROKER_LOGGER]
    response = broker.local_controller.incremental_alter_configs(body, now_ms, may_alter=may_alter)
    response.responses = [*response.responses, *(_alter_loggers(broker, request, one) for one in loggers)]
    return response


def _alter_loggers(broker: Broker, request: Request, resource: Resource) -> Result:
    result = Result(resource_type=resource.resource_type, resource_name=resource.resource_name, error_message=None)
    asked = ConfigResource(resource.resource_type, resource.resource_name)
    denied = refusal(broker, request, Operation.ALTER_CONFIGS, asked)
    if denied is not None:
        result.error_code = denied.code
        return result
    try:
        alter_loggers(
            broker.node_id, resource.resource_name, resource.configs, validate_only=request.body.validate_only
        )
    except KafkaError as error:
        result.error_code, result.error_message = error.code, str(error)
    return result
