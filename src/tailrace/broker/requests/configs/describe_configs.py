"""DescribeConfigs (key 32), versions 0–4.

Behaviour
    Returns the configs of topics, brokers, groups and metrics subscriptions, and the log levels of this process: all
    keys or the requested ones, each with its source. The values of secrets are not returned.
Version notes
    0   a flag for default values
    1   the source of a value, and on request its synonyms
    3   types, and on request documentation: one sentence of our own for each key
"""

from __future__ import annotations

from tailrace.broker.config.broker_config import BrokerConfig
from tailrace.broker.config.config_description import DescribedConfig, describe_config
from tailrace.broker.config.setting_sentences import sentence_of
from tailrace.broker.requests.configs.config_authorization import refusal
from tailrace.broker.requests.configs.loggers import describe_loggers
from tailrace.broker.requests.request_context import Request
from tailrace.broker.security.authorizer import Operation
from tailrace.broker.security.permissions import Permissions
from tailrace.metadata.controller.controller import Controller
from tailrace.metadata.image.effective_config import ConfigSource
from tailrace.metadata.image.image import ConfigResource, ResourceType
from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.protocol.messages import DescribeConfigsRequest, DescribeConfigsResponse

Result = DescribeConfigsResponse.DescribeConfigsResult
Entry = DescribeConfigsResponse.DescribeConfigsResourceResult

_RESOURCE_TYPES = frozenset(ResourceType) - {ResourceType.UNKNOWN}


def handle(
    request: Request, now_ms: int, *, config: BrokerConfig, controller: Controller, permissions: Permissions
) -> DescribeConfigsResponse:
    body: DescribeConfigsRequest = request.body
    odd = next((one.resource_type for one in body.resources if one.resource_type not in _RESOURCE_TYPES), None)
    if odd is not None:
        # As in Kafka, one unknown resource type refuses the whole request.
        error = KafkaError(ErrorCode.INVALID_REQUEST, f"resource type {odd} is unknown")
        return DescribeConfigsResponse(results=[_refused(one, error) for one in body.resources])
    return DescribeConfigsResponse(
        results=[
            _describe(request, one, config=config, controller=controller, permissions=permissions)
            for one in body.resources
        ]
    )


def _describe(
    request: Request,
    asked: DescribeConfigsRequest.DescribeConfigsResource,
    *,
    config: BrokerConfig,
    controller: Controller,
    permissions: Permissions,
) -> Result:
    resource = ConfigResource(asked.resource_type, asked.resource_name)
    denied = refusal(request, Operation.DESCRIBE_CONFIGS, resource, permissions=permissions)
    if denied is not None:
        return _refused(asked, KafkaError(denied.code, denied.message or ""))
    try:
        if resource.type == ResourceType.BROKER_LOGGER:
            found = describe_loggers(controller.node_id, resource.name)
        else:
            found = describe_config(config, controller.image, resource)
    except KafkaError as error:
        return _refused(asked, error)
    keys = asked.configuration_keys
    return Result(
        error_message=None,
        resource_type=asked.resource_type,
        resource_name=asked.resource_name,
        configs=[_entry(one, asked.resource_type, request) for one in found if not keys or one.name in keys],
    )


def _entry(config: DescribedConfig, resource_type: int, request: Request) -> Entry:
    entry = Entry(
        name=config.name,
        value=config.value,
        read_only=config.read_only,
        is_sensitive=config.is_sensitive,
        config_source=config.source,
        config_type=config.config_type,
        documentation=_documentation(config, resource_type, request),
    )
    if request.version == 0:
        entry.is_default = config.source == ConfigSource.DEFAULT_CONFIG
    if request.body.include_synonyms:
        entry.synonyms = [
            DescribeConfigsResponse.DescribeConfigsSynonym(name=one.name, value=one.value, source=one.source)
            for one in config.synonyms
        ]
    return entry


def _documentation(config: DescribedConfig, resource_type: int, request: Request) -> str | None:
    if config.source == ConfigSource.DYNAMIC_BROKER_LOGGER_CONFIG:
        return ""
    return sentence_of(resource_type, config.name) if request.body.include_documentation else None


def _refused(asked: DescribeConfigsRequest.DescribeConfigsResource, error: KafkaError) -> Result:
    return Result(
        error_code=error.code,
        error_message=None if str(error) == error.code.name else str(error),
        resource_type=asked.resource_type,
        resource_name=asked.resource_name,
    )
