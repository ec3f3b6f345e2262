"""Metadata (key 3), versions 0–13.

Behaviour
    Returns the live brokers, and the partitions of the requested topics with leaders, replicas and in-sync replicas.
    A missing topic is created if the broker and the client allow it, and is part of the same response.
Version notes
    0   an empty list asks for all topics, as null does from version 1 on
    1   controller, rack, internal topics
    2   cluster id
    4   the client may forbid the creation of topics
    5   offline replicas
    7   leader epochs
    8   authorized operations, until 10 also of the cluster
    10  topic ids; from 12 on also in the request
    13  an error for the whole request
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from tailrace.broker.cluster.forwarding import Forwarding
from tailrace.broker.config.broker_config import BrokerConfig
from tailrace.broker.handling.throttling import Throttling
from tailrace.broker.replies import Replies
from tailrace.broker.requests.request_context import Request
from tailrace.broker.requests.topics.auto_creation import auto_create_topic
from tailrace.broker.requests.topics.encoded_topics import EncodedTopics, WholeMetadata
from tailrace.broker.requests.topics.topic_view import INTERNAL_TOPICS, view_partition
from tailrace.broker.security.authorizer import (
    NOT_ASKED,
    AclResource,
    Authorizer,
    Operation,
    cluster_operations,
    topic_operations,
)
from tailrace.broker.security.permissions import Permissions
from tailrace.broker.storage.image_publisher import ImagePublisher
from tailrace.metadata.controller.controller import Controller
from tailrace.metadata.controller.local_controller import LocalController
from tailrace.metadata.decisions.topic_names import name_problem
from tailrace.metadata.image.image import TopicImage
from tailrace.metadata.image.registrations import BrokerRegistration
from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.model.steps import Steps
from tailrace.protocol.messages import MetadataRequest, MetadataResponse

_IDS_FROM = 12
_ZERO_ID = bytes(16)


def handle(
    request: Request,
    now_ms: int,
    *,
    authorizer: Authorizer,
    config: BrokerConfig,
    controller: Controller,
    encoded_topics: EncodedTopics,
    forwarding: Forwarding | None,
    local_controller: LocalController | None,
    permissions: Permissions,
    publisher: ImagePublisher,
    replies: Replies,
    throttling: Throttling,
) -> MetadataResponse | Steps[MetadataResponse] | None:
    wanted = request.body.topics
    if wanted is None or (request.version == 0 and not wanted):
        return _all_topics(
            request, authorizer=authorizer, controller=controller, encoded_topics=encoded_topics, replies=replies
        )
    refused = _refuse_whole(request.body, request.version)
    if refused is not None:
        return refused
    before = controller.image
    response = MetadataResponse(
        topics=[
            _answer(
                request,
                one,
                now_ms,
                authorizer=authorizer,
                config=config,
                controller=controller,
                forwarding=forwarding,
                local_controller=local_controller,
                permissions=permissions,
                throttling=throttling,
            )
            for one in _distinct(wanted)
        ]
    )
    _add_cluster(response, request, authorizer=authorizer, controller=controller)
    if controller.image is before:
        return response
    # A topic was created: the response waits until clients can use it.
    publisher.when_hosted(
        [one.name for one in response.topics if one.name],
        lambda then_ms: replies.answer(request, response, then_ms),
        now_ms,
    )
    return None


def _add_cluster(
    response: MetadataResponse, request: Request, *, authorizer: Authorizer, controller: Controller
) -> None:
    """Add the fields of a response that are not topics."""
    context = request.context
    response.brokers = [
        MetadataResponse.MetadataResponseBroker(
            node_id=one.id,
            host=one.endpoints[context.listener].host,
            port=one.endpoints[context.listener].port,
            rack=one.rack,
        )
        for one in _brokers(controller=controller)
        if context.listener in one.endpoints
    ]
    response.cluster_id = controller.image.cluster_id
    response.controller_id = controller.node_id
    if request.body.include_cluster_authorized_operations:
        response.cluster_authorized_operations = cluster_operations(authorizer, context.principal, context.client_host)


def _all_topics(
    request: Request, *, authorizer: Authorizer, controller: Controller, encoded_topics: EncodedTopics, replies: Replies
) -> Steps[MetadataResponse]:
    context, image = request.context, controller.image
    is_visible = partial(authorizer.allows_silently, context.principal, context.client_host, Operation.DESCRIBE)
    visible = []
    for topic in image.topics.values():
        if is_visible(AclResource.TOPIC, topic.name):
            visible.append(topic)
        yield
    response: MetadataResponse
    if request.body.include_topic_authorized_operations:
        response = MetadataResponse()
        for topic in visible:
            response.topics.append(_describe(request, topic, authorizer=authorizer, controller=controller))
            yield
    else:
        response = whole = WholeMetadata()
        whole.encoded_topics = yield from encoded_topics.of(
            visible,
            image.brokers,
            context.listener,
            request.version,
            partial(_describe, request, authorizer=authorizer, controller=controller),
            replies.errors_of(request.api_key),
        )
    _add_cluster(response, request, authorizer=authorizer, controller=controller)
    return response


def _brokers(*, controller: Controller) -> Iterable[BrokerRegistration]:
    """Return the live brokers, or all registered brokers if none is live.

    No broker may be live for a moment if all controllers fail. Kafka then returns no brokers, and clients such as
    librdkafka have no address left for a retry.
    """
    return controller.image.unfenced_brokers() or controller.image.brokers.values()


def _refuse_whole(body: MetadataRequest, version: int) -> MetadataResponse | None:
    """Return a refusal of the whole request if it names a topic in a form that its version does not have."""
    wanted = body.topics or []
    if version >= _IDS_FROM and all(one.name is not None or one.topic_id != _ZERO_ID for one in wanted):
        return None
    if version < _IDS_FROM and all(one.name is not None and one.topic_id == _ZERO_ID for one in wanted):
        return None
    return MetadataResponse(
        cluster_id=None,
        error_code=ErrorCode.INVALID_REQUEST,
        topics=[_problem(ErrorCode.INVALID_REQUEST, name=one.name or "", topic_id=one.topic_id) for one in wanted],
    )


def _distinct(wanted: list[MetadataRequest.MetadataRequestTopic]) -> list[MetadataRequest.MetadataRequestTopic]:
    """Return each topic once. If some have ids, topics without an id are ignored."""
    by_id = {one.topic_id: one for one in wanted if one.topic_id != _ZERO_ID}
    return list(by_id.values()) if by_id else list({one.name: one for one in wanted}.values())


def _may_see(request: Request, topic: str, *, permissions: Permissions) -> bool:
    return permissions.allows(request, Operation.DESCRIBE, AclResource.TOPIC, topic)


def _answer(
    request: Request,
    wanted: MetadataRequest.MetadataRequestTopic,
    now_ms: int,
    *,
    authorizer: Authorizer,
    config: BrokerConfig,
    controller: Controller,
    forwarding: Forwarding | None,
    local_controller: LocalController | None,
    permissions: Permissions,
    throttling: Throttling,
) -> MetadataResponse.MetadataResponseTopic:
    if wanted.topic_id != _ZERO_ID:
        topic = controller.image.topics_by_id.get(wanted.topic_id)
        if topic is None:
            return _problem(ErrorCode.UNKNOWN_TOPIC_ID, name=None, topic_id=wanted.topic_id)
        if not _may_see(request, topic.name, permissions=permissions):
            # A client without the right to a topic must not learn its name.
            return _problem(ErrorCode.TOPIC_AUTHORIZATION_FAILED, name=None, topic_id=wanted.topic_id)
        return _describe(request, topic, authorizer=authorizer, controller=controller)
    name = wanted.name
    assert name is not None, "a topic without a name and an id refuses the whole request"
    if not _may_see(request, name, permissions=permissions):
        return _problem(ErrorCode.TOPIC_AUTHORIZATION_FAILED, name=name)
    if name not in controller.image.topics:
        error = _create_missing(
            request,
            name,
            now_ms,
            config=config,
            forwarding=forwarding,
            local_controller=local_controller,
            permissions=permissions,
            throttling=throttling,
        )
        if error is not None:
            problem = _problem(error, name=name)
            if error is not ErrorCode.TOPIC_AUTHORIZATION_FAILED:
                problem.topic_authorized_operations = _operations(request, name, authorizer=authorizer)
            return problem
    return _describe(request, controller.image.topics[name], authorizer=authorizer, controller=controller)


def _create_missing(
    request: Request,
    name: str,
    now_ms: int,
    *,
    config: BrokerConfig,
    forwarding: Forwarding | None,
    local_controller: LocalController | None,
    permissions: Permissions,
    throttling: Throttling,
) -> ErrorCode | None:
    """Create a missing topic. Return the error if it is not created."""
    if name_problem(name):
        return ErrorCode.INVALID_TOPIC_EXCEPTION
    if not (request.body.allow_auto_topic_creation and config.flag("auto.create.topics.enable")):
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    try:
        auto_create_topic(
            request,
            name,
            now_ms,
            forwarding=forwarding,
            local_controller=local_controller,
            permissions=permissions,
            throttling=throttling,
        )
    except KafkaError as error:
        return error.code
    return None


def _operations(request: Request, topic: str, *, authorizer: Authorizer) -> int:
    if not request.body.include_topic_authorized_operations:
        return NOT_ASKED
    context = request.context
    return topic_operations(authorizer, context.principal, context.client_host, topic)


def _problem(
    error: ErrorCode, *, name: str | None, topic_id: bytes = _ZERO_ID
) -> MetadataResponse.MetadataResponseTopic:
    return MetadataResponse.MetadataResponseTopic(
        error_code=error, name=name, topic_id=topic_id, is_internal=name in INTERNAL_TOPICS
    )


def _describe(
    request: Request, topic: TopicImage, *, authorizer: Authorizer, controller: Controller
) -> MetadataResponse.MetadataResponseTopic:
    context = request.context
    partitions = []
    for number, partition in topic.partitions.items():
        view = view_partition(controller.image, partition, context.listener, hide_unreachable=request.version == 0)
        error = view.error_code
        if error == ErrorCode.LISTENER_NOT_FOUND and request.version < 6:
            error = ErrorCode.LEADER_NOT_AVAILABLE
        partitions.append(
            MetadataResponse.MetadataResponsePartition(
                error_code=error,
                partition_index=number,
                leader_id=view.leader_id,
                leader_epoch=view.leader_epoch,
                replica_nodes=view.replicas,
                isr_nodes=view.isr,
                offline_replicas=view.offline_replicas,
            )
        )
    return MetadataResponse.MetadataResponseTopic(
        name=topic.name,
        topic_id=topic.id,
        is_internal=topic.name in INTERNAL_TOPICS,
        partitions=partitions,
        topic_authorized_operations=_operations(request, topic.name, authorizer=authorizer),
    )
