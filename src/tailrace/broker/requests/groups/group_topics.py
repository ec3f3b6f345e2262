"""Topics of group and offset requests, by name or id, and the client's rights to them."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

from tailrace.broker.requests.request_context import Request
from tailrace.broker.security.authorizer import AclResource, Authorizer, Operation, rights_of
from tailrace.broker.security.permissions import Permissions
from tailrace.coordinator.groups.group import IsVisible, all_visible
from tailrace.metadata.controller.controller import Controller
from tailrace.metadata.image.image import TopicImage
from tailrace.model.errors import ErrorCode


class FoundTopic(NamedTuple):
    name: str
    topic: TopicImage | None
    error: ErrorCode  # NONE if the topic exists and the client has the right


def visibility_of(request: Request, *, authorizer: Authorizer) -> IsVisible:
    """Return a function that checks if the client may see a topic. It may be called long after the request."""
    rights, context = rights_of(authorizer), request.context
    if rights is None:
        return all_visible
    return partial(
        rights.allows_silently, context.principal, context.client_host, Operation.DESCRIBE, AclResource.TOPIC
    )


def find_topic(
    request: Request,
    identity: bytes | str,
    operation: Operation,
    *,
    controller: Controller,
    permissions: Permissions,
) -> FoundTopic:
    """Find a topic by its id or name."""
    if isinstance(identity, bytes):
        known = controller.image.topics_by_id.get(identity)
        if known is None:
            return FoundTopic("", None, ErrorCode.UNKNOWN_TOPIC_ID)
        name = known.name
    else:
        name = identity
    if not permissions.allows(request, operation, AclResource.TOPIC, name):
        return FoundTopic(name, None, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    topic = controller.image.topics.get(name)
    return FoundTopic(name, topic, ErrorCode.NONE if topic is not None else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
