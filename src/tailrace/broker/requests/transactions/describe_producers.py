"""DescribeProducers (key 61), version 0.

Behaviour
    Returns the active idempotent and transactional producers of partitions led here, with the first offset of each open
    transaction. A request of many partitions gets one answer for each of them, however often it names them.
"""

from __future__ import annotations

from tailrace.broker.requests.request_context import Request
from tailrace.broker.security.authorizer import AclResource, Operation
from tailrace.broker.security.permissions import Permissions
from tailrace.log.partition_log import PartitionLog
from tailrace.log.producers.producer_state import ProducerState
from tailrace.metadata.controller.controller import Controller
from tailrace.metadata.decisions.topic_names import name_problem
from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.model.ids import TopicPartition
from tailrace.model.steps import Steps
from tailrace.protocol.messages import DescribeProducersRequest, DescribeProducersResponse
from tailrace.replication.hosted_partitions import HostedPartitions

Answer = DescribeProducersResponse.PartitionResponse
State = DescribeProducersResponse.ProducerState

PARTITIONS_AT_ONCE = 16  # a request of more partitions pauses, and a repeated partition has only its first answer
PRODUCERS_AT_ONCE = 1_000


def handle(
    request: Request, now_ms: int, *, controller: Controller, partitions: HostedPartitions, permissions: Permissions
) -> Steps[DescribeProducersResponse]:
    body: DescribeProducersRequest = request.body
    are_many = sum(len(topic.partition_indexes) for topic in body.topics) > PARTITIONS_AT_ONCE
    seen: set[TopicPartition] = set()
    response = DescribeProducersResponse()
    number = 0
    for topic in body.topics:
        found = DescribeProducersResponse.TopicResponse(name=topic.name)
        response.topics.append(found)
        for index in topic.partition_indexes:
            number += 1
            if number % PARTITIONS_AT_ONCE == 0:
                yield
            key = TopicPartition(topic.name, index)
            if are_many and key in seen:
                continue  # a million repetitions of a partition with thousands of producers fit into no memory
            seen.add(key)
            answer = Answer(partition_index=index)
            found.partitions.append(answer)
            try:
                log = _log_of(request, key, answer, partitions, permissions)
            except KafkaError as error:
                answer.error_code = error.code
                # As in Kafka, errors of existing topics have no message.
                answer.error_message = None if topic.name in controller.image.topics else str(error)
                continue
            if log is not None:
                yield from _describe(log, answer)
    return response


def _log_of(
    request: Request, key: TopicPartition, answer: Answer, partitions: HostedPartitions, permissions: Permissions
) -> PartitionLog | None:
    if not permissions.allows(request, Operation.READ, AclResource.TOPIC, key.topic):
        answer.error_code, answer.error_message = ErrorCode.TOPIC_AUTHORIZATION_FAILED, "not authorized to read it"
        return None
    problem = name_problem(key.topic)
    if problem is not None:
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, problem)
    partition = partitions.find(key)
    partition.fence(-1, leader_only=True)
    return partition.log


def _describe(log: PartitionLog, answer: Answer) -> Steps[None]:
    states = list(log.producers.producers.values())
    for first in range(0, len(states), PRODUCERS_AT_ONCE):
        if first:
            yield
        answer.active_producers += [_state_of(state) for state in states[first : first + PRODUCERS_AT_ONCE]]


def _state_of(state: ProducerState) -> State:
    return State(
        producer_id=state.producer_id,
        producer_epoch=state.producer_epoch,
        last_sequence=state.last_sequence,
        last_timestamp=state.last_timestamp,
        coordinator_epoch=state.coordinator_epoch,
        current_txn_start_offset=-1 if state.transaction_first_offset is None else state.transaction_first_offset,
    )
