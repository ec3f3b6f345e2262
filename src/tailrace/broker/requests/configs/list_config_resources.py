"""ListConfigResources (key 74), versions 0–1.

Behaviour
    Returns the names of resources that have configs: all topics and brokers, and the groups and metrics subscriptions
    with their own settings.
Version notes
    0   metrics subscriptions only
    1   a filter by resource types
"""

from __future__ import annotations

from collections.abc import Iterable

from tailrace.broker.requests.cluster.cluster_authorization import check_cluster
from tailrace.broker.requests.request_context import Request
from tailrace.broker.security.authorizer import Operation
from tailrace.broker.security.permissions import Permissions
from tailrace.metadata.controller.controller import Controller
from tailrace.metadata.image.image import MetadataImage, ResourceType
from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.protocol.messages import ListConfigResourcesResponse

_TYPES = (
    ResourceType.TOPIC,
    ResourceType.BROKER,
    ResourceType.BROKER_LOGGER,
    ResourceType.CLIENT_METRICS,
    ResourceType.GROUP,
)


def handle(
    request: Request, now_ms: int, *, controller: Controller, permissions: Permissions
) -> ListConfigResourcesResponse:
    check_cluster(request, Operation.DESCRIBE_CONFIGS, permissions=permissions)
    asked = request.body.resource_types or _TYPES if request.version >= 1 else (ResourceType.CLIENT_METRICS,)
    odd = [one for one in asked if one not in _TYPES]
    if odd:
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, f"resource type {odd[0]} is unknown")
    return ListConfigResourcesResponse(
        config_resources=[
            ListConfigResourcesResponse.ConfigResource(resource_name=name, resource_type=kind)
            for kind in dict.fromkeys(asked)
            for name in _names(controller.image, kind)
        ]
    )


def _names(image: MetadataImage, kind: int) -> Iterable[str]:
    if kind == ResourceType.TOPIC:
        return image.topics
    if kind in (ResourceType.BROKER, ResourceType.BROKER_LOGGER):
        return [str(one.id) for one in image.brokers.values() if not one.fenced]
    return [resource.name for resource in image.configs if resource.type == kind]
