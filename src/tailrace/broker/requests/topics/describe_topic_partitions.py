"""DescribeTopicPartitions (key 75), version 0.

Behaviour
    Like Metadata, but in pages: topics in the order of their names, at most `response_partition_limit` partitions, and
    a cursor for the next page. Without topics, all topics are returned. Partitions have their eligible leader replicas.
"""

from __future__ import annotations

from tailrace.broker.config.broker_config import BrokerConfig
from tailrace.broker.requests.request_context import Request
from tailrace.broker.requests.topics.topic_view import INTERNAL_TOPICS, view_partition
from tailrace.broker.security.authorizer import AclResource, Authorizer, Operation, topic_operations
from tailrace.broker.security.permissions import Permissions
from tailrace.metadata.controller.controller import Controller
from tailrace.metadata.decisions.topic_names import name_problem
from tailrace.metadata.image.image import TopicImage
from tailrace.model.errors import ErrorCode
from tailrace.protocol.messages import DescribeTopicPartitionsRequest, DescribeTopicPartitionsResponse

Topic = DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponseTopic
Partition = DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponsePartition


def handle(
    request: Request,
    now_ms: int,
    *,
    authorizer: Authorizer,
    config: BrokerConfig,
    controller: Controller,
    permissions: Permissions,
) -> DescribeTopicPartitionsResponse:
    body: DescribeTopicPartitionsRequest = request.body
    cursor = body.cursor
    everything = not body.topics
    if cursor is not None and (
        cursor.partition_index < 0 or not (everything or any(one.name == cursor.topic_name for one in body.topics))
    ):
        # The response has no error field except those of topics.
        code = ErrorCode.INVALID_REQUEST
        return DescribeTopicPartitionsResponse(topics=[Topic(error_code=code, name=one.name) for one in body.topics])
    names = sorted(controller.image.topics) if everything else sorted({one.name for one in body.topics})
    start = cursor.topic_name if cursor is not None else ""
    room = min(max(body.response_partition_limit, 1), config.integer("max.request.partition.size.limit"))
    names = [name for name in names if name >= start]
    ask = permissions.allows_silently if everything else permissions.allows
    visible = [name for name in names if ask(request, Operation.DESCRIBE, AclResource.TOPIC, name)]
    response = _page(request, visible, cursor, room, authorizer=authorizer, controller=controller)
    if not everything:
        # As in Kafka, refused topics come last, and on each page.
        refused = sorted(set(names).difference(visible))
        response.topics += [Topic(error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED, name=name) for name in refused]
    return response


def _page(
    request: Request,
    names: list[str],
    cursor: DescribeTopicPartitionsRequest.Cursor | None,
    room: int,
    *,
    authorizer: Authorizer,
    controller: Controller,
) -> DescribeTopicPartitionsResponse:
    response = DescribeTopicPartitionsResponse()
    for name in names:
        topic = controller.image.topics.get(name)
        if topic is None:
            operations = topic_operations(authorizer, request.context.principal, request.context.client_host, name)
            response.topics.append(
                Topic(
                    error_code=_missing(name),
                    name=name,
                    is_internal=name in INTERNAL_TOPICS,
                    topic_authorized_operations=operations,
                )
            )
            continue
        first = cursor.partition_index if cursor is not None and name == cursor.topic_name else 0
        numbers = sorted(number for number in topic.partitions if number >= first)
        if room == 0 and numbers:
            response.next_cursor = DescribeTopicPartitionsResponse.Cursor(topic_name=name, partition_index=first)
            break
        response.topics.append(_describe(request, topic, numbers[:room], authorizer=authorizer, controller=controller))
        if len(numbers) > room:
            response.next_cursor = DescribeTopicPartitionsResponse.Cursor(
                topic_name=name, partition_index=numbers[room]
            )
            break
        room -= len(numbers)
    return response


def _missing(name: str) -> ErrorCode:
    return ErrorCode.INVALID_TOPIC_EXCEPTION if name_problem(name) else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def _describe(
    request: Request, topic: TopicImage, numbers: list[int], *, authorizer: Authorizer, controller: Controller
) -> Topic:
    context = request.context
    partitions = []
    for number in numbers:
        partition = topic.partitions[number]
        view = view_partition(controller.image, partition, context.listener)
        partitions.append(
            Partition(
                error_code=view.error_code,
                partition_index=number,
                leader_id=view.leader_id,
                leader_epoch=view.leader_epoch,
                replica_nodes=view.replicas,
                isr_nodes=view.isr,
                eligible_leader_replicas=list(partition.elr),
                last_known_elr=list(partition.last_known_elr),
                offline_replicas=view.offline_replicas,
            )
        )
    return Topic(
        name=topic.name,
        topic_id=topic.id,
        is_internal=topic.name in INTERNAL_TOPICS,
        partitions=partitions,
        topic_authorized_operations=topic_operations(authorizer, context.principal, context.client_host, topic.name),
    )
