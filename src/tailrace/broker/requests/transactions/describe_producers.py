"""DescribeProducers (key 61), version 0.

Behaviour
    Returns the active idempotent and transactional producers of partitions led here, with the first offset of each open
    transaction.
"""

from __future__ import annotations

from tailrace.broker.requests.request_context import Request
from tailrace.broker.security.authorizer import AclResource, Operation
from tailrace.broker.security.permissions import Permissions
from tailrace.metadata.controller.controller import Controller
from tailrace.metadata.decisions.topic_names import name_problem
from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.model.ids import TopicPartition
from tailrace.protocol.messages import DescribeProducersRequest, DescribeProducersResponse
from tailrace.replication.hosted_partitions import HostedPartitions

Answer = DescribeProducersResponse.PartitionResponse
State = DescribeProducersResponse.ProducerState


def handle(
    request: Request, now_ms: int, *, controller: Controller, partitions: HostedPartitions, permissions: Permissions
) -> DescribeProducersResponse:
    body: DescribeProducersRequest = request.body
    return DescribeProducersResponse(
        topics=[
            DescribeProducersResponse.TopicResponse(
                name=topic.name,
                partitions=[
                    _answer(
                        request,
                        topic.name,
                        index,
                        controller=controller,
                        partitions=partitions,
                        permissions=permissions,
                    )
                    for index in topic.partition_indexes
                ],
            )
            for topic in body.topics
        ]
    )


def _answer(
    request: Request,
    topic: str,
    index: int,
    *,
    controller: Controller,
    partitions: HostedPartitions,
    permissions: Permissions,
) -> Answer:
    answer = Answer(partition_index=index)
    try:
        if not permissions.allows(request, Operation.READ, AclResource.TOPIC, topic):
            answer.error_code, answer.error_message = ErrorCode.TOPIC_AUTHORIZATION_FAILED, "not authorized to read it"
            return answer
        problem = name_problem(topic)
        if problem is not None:
            raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, problem)
        partition = partitions.find(TopicPartition(topic, index))
        partition.fence(-1, leader_only=True)
    except KafkaError as error:
        answer.error_code = error.code
        # As in Kafka, errors of existing topics have no message.
        answer.error_message = None if topic in controller.image.topics else str(error)
        return answer
    answer.active_producers = [
        State(
            producer_id=state.producer_id,
            producer_epoch=state.producer_epoch,
            last_sequence=state.last_sequence,
            last_timestamp=state.last_timestamp,
            coordinator_epoch=state.coordinator_epoch,
            current_txn_start_offset=-1 if state.transaction_first_offset is None else state.transaction_first_offset,
        )
        for state in partition.log.producers.producers.values()
    ]
    return answer
