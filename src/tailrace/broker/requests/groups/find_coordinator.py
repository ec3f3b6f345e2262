"""FindCoordinator (key 10), versions 0–6.

Behaviour
    Returns the broker that coordinates a group or a transactional id: the leader of the partition to which the name is
    hashed. The first request creates the coordinator's topic. The response waits until this broker hosts the new
    partitions, so the client's next request does not fail with NOT_COORDINATOR.
Version notes
    1   transactional ids as well as groups
    4   several keys at once
    6   share groups
"""

from __future__ import annotations

import logging
from typing import NamedTuple

from tailrace.broker.coordination.coordinator_topics import (
    CONSUMER_OFFSETS,
    SHARE_GROUP_STATE,
    TRANSACTION_STATE,
    CoordinatorTopics,
)
from tailrace.broker.coordination.coordinators import Coordinators
from tailrace.broker.replies import Replies
from tailrace.broker.requests.cluster.cluster_authorization import REFUSED
from tailrace.broker.requests.request_context import Request
from tailrace.broker.requests.topics.topic_view import endpoint_of
from tailrace.broker.security.authorizer import CLUSTER_NAME, AclResource, Operation
from tailrace.broker.security.permissions import Permissions
from tailrace.broker.storage.image_publisher import ImagePublisher
from tailrace.metadata.controller.controller import Controller
from tailrace.metadata.image.registrations import Endpoint
from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.model.ids import TopicId, TopicPartition
from tailrace.protocol.codegen.field_versions import first_version_with
from tailrace.protocol.messages import FindCoordinatorRequest, FindCoordinatorResponse

_log = logging.getLogger(__name__)

_BATCHES_FROM = first_version_with("FindCoordinatorRequest", "coordinator_keys")


class _KeyType(NamedTuple):
    from_version: int
    topic: str
    resource: AclResource
    refusal: ErrorCode


_KEY_TYPES = {
    0: _KeyType(0, CONSUMER_OFFSETS, AclResource.GROUP, ErrorCode.GROUP_AUTHORIZATION_FAILED),
    1: _KeyType(1, TRANSACTION_STATE, AclResource.TRANSACTIONAL_ID, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED),
    2: _KeyType(6, SHARE_GROUP_STATE, AclResource.CLUSTER, ErrorCode.CLUSTER_AUTHORIZATION_FAILED),
}


def handle(
    request: Request,
    now_ms: int,
    *,
    controller: Controller,
    coordinator_topics: CoordinatorTopics,
    coordinators: Coordinators,
    permissions: Permissions,
    publisher: ImagePublisher,
    replies: Replies,
) -> FindCoordinatorResponse | None:
    body: FindCoordinatorRequest = request.body
    keys = body.coordinator_keys if request.version >= _BATCHES_FROM else [body.key]
    response = _response(
        request.version,
        [
            _find(
                request,
                key,
                now_ms,
                controller=controller,
                coordinator_topics=coordinator_topics,
                coordinators=coordinators,
                permissions=permissions,
            )
            for key in keys
        ],
    )
    known = _KEY_TYPES.get(body.key_type)
    image = controller.image
    if known is None or not any(
        publisher.is_new(TopicPartition(known.topic, coordinators.partition_of(known.topic, key, image)))
        for key in keys
    ):
        return response
    publisher.when_hosted([known.topic], lambda then_ms: replies.answer(request, response, then_ms), now_ms)
    return None


def _response(version: int, found: list[FindCoordinatorResponse.Coordinator]) -> FindCoordinatorResponse:
    if version >= _BATCHES_FROM:
        return FindCoordinatorResponse(coordinators=found)
    (only,) = found
    return FindCoordinatorResponse(
        error_code=only.error_code,
        error_message=only.error_message or ErrorCode.NONE.name,  # as in Kafka, in these versions
        node_id=only.node_id,
        host=only.host,
        port=only.port,
    )


def _find(
    request: Request,
    key: str,
    now_ms: int,
    *,
    controller: Controller,
    coordinator_topics: CoordinatorTopics,
    coordinators: Coordinators,
    permissions: Permissions,
) -> FindCoordinatorResponse.Coordinator:
    try:
        node_id, endpoint = _coordinator(
            request,
            key,
            now_ms,
            controller=controller,
            coordinator_topics=coordinator_topics,
            coordinators=coordinators,
            permissions=permissions,
        )
    except KafkaError as error:
        # In versions with several keys, Kafka sends no message if it only repeats the error code.
        is_plain = request.version >= _BATCHES_FROM and str(error) == error.code.name
        return FindCoordinatorResponse.Coordinator(
            key=key, node_id=-1, host="", port=-1, error_code=error.code, error_message=None if is_plain else str(error)
        )
    return FindCoordinatorResponse.Coordinator(key=key, node_id=node_id, host=endpoint.host, port=endpoint.port)


def _coordinator(
    request: Request,
    key: str,
    now_ms: int,
    *,
    controller: Controller,
    coordinator_topics: CoordinatorTopics,
    coordinators: Coordinators,
    permissions: Permissions,
) -> tuple[int, Endpoint]:
    key_type = request.body.key_type
    known = _KEY_TYPES.get(key_type)
    if known is None or request.version < known.from_version:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"key type {key_type} is unknown in version {request.version}")
    operation = Operation.CLUSTER_ACTION if known.resource is AclResource.CLUSTER else Operation.DESCRIBE
    name = CLUSTER_NAME if known.resource is AclResource.CLUSTER else key
    if not permissions.allows(request, operation, known.resource, name):
        raise KafkaError(known.refusal, REFUSED if known.resource is AclResource.CLUSTER else "")
    if coordinators.get(known.topic) is None:
        raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, "this broker has no coordinator for this key type")
    if known.topic == SHARE_GROUP_STATE and not _names_share_partition(key):
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"{key} is not a share partition; write group:topic id:partition")
    try:
        coordinator_topics.ensure(known.topic, now_ms)
    except KafkaError as error:
        _log.warning("%s cannot be created: %s", known.topic, error)
        raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, f"{known.topic} cannot be created: {error}") from error
    partition = coordinators.partition_of(known.topic, key, controller.image)
    state = controller.image.partition(TopicPartition(known.topic, partition))
    endpoint = None if state is None else endpoint_of(controller.image, state.leader, request.context.listener)
    if state is None or endpoint is None:
        raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, f"partition {partition} of {known.topic} has no leader")
    return state.leader, endpoint


def _names_share_partition(key: str) -> bool:
    group_id, _, rest = key.rpartition(":")
    group_id, _, topic_id = group_id.rpartition(":")
    try:
        TopicId.parse(topic_id)
        int(rest)
    except ValueError:
        return False
    return bool(group_id.strip())
