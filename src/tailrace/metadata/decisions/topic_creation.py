"""CreateTopics and CreatePartitions: the decisions.

A topic gets its partitions by placement (a count and a replication factor, -1 for the broker's default) or by a manual
assignment. A manual assignment has to list every partition from 0 on, with the same number of replicas each. The ISR of
a new partition is its active replicas, its leader the first of them. Epochs start at zero.

Both decisions are steps that can pause (`model/steps.py`), because a request may create 10,000 partitions. A decision
is valid for the image that it began with.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from tailrace.metadata.controller.control_state import (
    MAX_RECORDS,
    NO_ERROR,
    ApiError,
    Charge,
    ControlState,
    Plan,
    check_size,
    free_of_charge,
)
from tailrace.metadata.decisions.config_changes import plan_new_topic_configs
from tailrace.metadata.decisions.replicas.replica_placement import place_replicas, usable_brokers
from tailrace.metadata.decisions.topic_names import CLUSTER_METADATA, collision_key, may_collide, name_problem
from tailrace.metadata.image.partition_registration import PartitionRegistration
from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.model.ids import BrokerId
from tailrace.model.steps import ITEMS_PER_STEP, Steps
from tailrace.protocol import messages
from tailrace.protocol.message import Message


def _anything(_: str) -> bool:
    return True


def plan_create_topics(
    state: ControlState,
    request: messages.CreateTopicsRequest,
    *,
    may_create: Callable[[str], bool] = _anything,
    may_describe: Callable[[str], bool] = _anything,
    charge: Charge = free_of_charge,
) -> Steps[Plan[messages.CreateTopicsResponse]]:
    counts = Counter(topic.name for topic in request.topics)
    left_out: dict[str, ApiError] = {}
    for name, count in counts.items():
        if count > 1:
            left_out[name] = ApiError(ErrorCode.INVALID_REQUEST, "the topic is listed twice in the request")
        elif name == CLUSTER_METADATA:
            left_out[name] = ApiError(
                ErrorCode.INVALID_REQUEST,
                f"{name} is the metadata log; it exists in every cluster and cannot be created",
            )
        elif not may_create(name):
            left_out[name] = ApiError(
                ErrorCode.TOPIC_AUTHORIZATION_FAILED,
                "not authorized to create the topic: the operation CREATE is needed",
            )
    response = messages.CreateTopicsResponse()
    records: list[Message] = []
    try:
        _check_total(state, request)
        collisions = _collisions(state)
        for topic in request.topics:
            if topic.name not in left_out:
                describes = may_describe(topic.name)
                made = yield from _create_topic(state, topic, collisions, describes, charge, records)
                response.topics.append(made)
        check_size(records)
    except KafkaError as error:
        return Plan([], (yield from refused_creation(request, ApiError.of(error))))
    response.topics += [_refused(name, error) for name, error in left_out.items()]
    return Plan([] if request.validate_only else records, response)


def refused_creation(request: messages.CreateTopicsRequest, error: ApiError) -> Steps[messages.CreateTopicsResponse]:
    """Refuse all topics of a request."""
    response = messages.CreateTopicsResponse()
    for number, topic in enumerate(request.topics, 1):
        response.topics.append(_refused(topic.name, error))
        if not number % ITEMS_PER_STEP:
            yield
    return response


def _refused(name: str, error: ApiError) -> messages.CreateTopicsResponse.CreatableTopicResult:
    return messages.CreateTopicsResponse.CreatableTopicResult(
        name=name, error_code=error.code, error_message=error.message
    )


def _check_total(state: ControlState, request: messages.CreateTopicsRequest) -> None:
    total = 0
    by_default = state.default_partitions
    for topic in request.topics:
        if topic.assignments:
            total += len(topic.assignments)
        else:
            total += by_default if topic.num_partitions == -1 else max(0, topic.num_partitions)
    if total > MAX_RECORDS:
        raise KafkaError(
            ErrorCode.POLICY_VIOLATION,
            f"the request would create {total} partitions; the limit is {MAX_RECORDS}: split it into several",
        )


def _collisions(state: ControlState) -> dict[str, str]:
    """Return an existing topic for each key that new names may collide with."""
    return {collision_key(name): name for name in state.image.topics if may_collide(name)}


def _create_topic(
    state: ControlState,
    topic: messages.CreateTopicsRequest.CreatableTopic,
    collisions: dict[str, str],
    describes: bool,
    charge: Charge,
    records: list[Message],
) -> Steps[messages.CreateTopicsResponse.CreatableTopicResult]:
    try:
        _check_name(state, topic.name, collisions)
        settings, config_records = plan_new_topic_configs(state, topic.name, [(c.name, c.value) for c in topic.configs])
        assignments = yield from _assignments(state, topic)
        partitions = yield from _new_partitions(state, assignments)
        charge(len(partitions))
    except KafkaError as error:
        return _refused(topic.name, ApiError.of(error))
    topic_id = state.new_id()
    records.append(messages.TopicRecord(name=topic.name, topic_id=topic_id))
    records += config_records
    records += yield from partition_records(state, topic_id, 0, partitions)
    result = messages.CreateTopicsResponse.CreatableTopicResult(name=topic.name, topic_id=topic_id, error_message=None)
    if not describes:
        result.topic_config_error_code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        return result
    result.num_partitions = len(partitions)
    result.replication_factor = len(partitions[0].replicas)
    result.configs = [
        messages.CreateTopicsResponse.CreatableTopicConfigs(
            name=entry.key.name,
            value=None if entry.key.is_sensitive else entry.value,
            read_only=False,
            config_source=entry.source,
            is_sensitive=entry.key.is_sensitive,
        )
        for entry in state.configs.topic_entries(state.image, settings)
    ]
    return result


def _check_name(state: ControlState, name: str, collisions: dict[str, str]) -> None:
    if name in state.image.topics:
        raise KafkaError(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")
    problem = name_problem(name)
    if problem is None and may_collide(name) and collision_key(name) in collisions:
        problem = f"'{name}' collides with the topic '{collisions[collision_key(name)]}'"
    if problem is not None:
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, problem)


# (replicas, the ISR among them)
_Assignment = tuple[list[BrokerId], list[BrokerId]]


def _assignments(state: ControlState, topic: messages.CreateTopicsRequest.CreatableTopic) -> Steps[list[_Assignment]]:
    if topic.assignments:
        return _manual_assignments(state, topic)
    factor, partitions = topic.replication_factor, topic.num_partitions
    if factor == 0 or factor < -1:
        raise KafkaError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"the replication factor must be at least 1, or -1 for the default, not {factor}",
        )
    if partitions == 0 or partitions < -1:
        raise KafkaError(
            ErrorCode.INVALID_PARTITIONS,
            f"the number of partitions must be at least 1, or -1 for the default, not {partitions}",
        )
    return (
        yield from _placed(
            state,
            state.default_partitions if partitions == -1 else partitions,
            state.default_replication_factor if factor == -1 else factor,
        )
    )


def _placed(state: ControlState, partitions: int, factor: int) -> Steps[list[_Assignment]]:
    assignments = []
    for number, replicas in enumerate(
        place_replicas(usable_brokers(state.image), partitions, factor, state.next_int), 1
    ):
        isr = state.active_among(replicas)
        if not isr:
            raise KafkaError(ErrorCode.INVALID_REPLICATION_FACTOR, "all brokers are fenced or shutting down")
        assignments.append((replicas, isr))
        if not number % ITEMS_PER_STEP:
            yield
    return assignments


def _manual_assignments(state: ControlState, topic: messages.CreateTopicsRequest.CreatableTopic) -> list[_Assignment]:
    if topic.replication_factor != -1:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            f"with a manual assignment the replication factor must be -1, not {topic.replication_factor}",
        )
    if topic.num_partitions != -1:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            f"with a manual assignment the number of partitions must be -1, not {topic.num_partitions}",
        )
    found: dict[int, _Assignment] = {}
    factor = None
    for one in topic.assignments:
        if one.partition_index in found:
            raise _misassigned(f"partition {one.partition_index} has two assignments")
        found[one.partition_index] = _checked_assignment(state, one.broker_ids, factor, one.partition_index)
        factor = len(one.broker_ids)
    if sorted(found) != list(range(len(found))):
        raise _misassigned(
            f"the assigned partitions must be numbered from 0 on without a gap; they are {sorted(found)[:20]}"
        )
    return [found[number] for number in range(len(found))]


def _misassigned(reason: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, reason)


def _checked_assignment(
    state: ControlState, replicas: Sequence[BrokerId], factor: int | None, number: int
) -> _Assignment:
    check_replicas(state, replicas, factor)
    isr = state.active_among(list(replicas))
    if not isr:
        raise _misassigned(f"all brokers assigned to partition {number} are fenced or shutting down")
    return list(replicas), isr


def check_replicas(state: ControlState, replicas: Sequence[BrokerId], factor: int | None) -> None:
    """Raise INVALID_REPLICA_ASSIGNMENT unless the brokers are registered, distinct, and as many as elsewhere."""
    if not replicas:
        raise _misassigned("the assignment of a partition lists no brokers")
    for one in sorted(replicas):
        if one not in state.image.brokers:
            raise _misassigned(f"broker {one} is not registered")
        if replicas.count(one) > 1:
            raise _misassigned(f"broker {one} is listed twice in the assignment of a partition")
    if factor is not None and len(replicas) != factor:
        raise _misassigned(f"a partition is assigned {len(replicas)} replica(s); the other partitions have {factor}")


def _new_partitions(state: ControlState, assignments: Sequence[_Assignment]) -> Steps[list[PartitionRegistration]]:
    partitions = []
    for number, (replicas, isr) in enumerate(assignments, 1):
        partitions.append(_new_partition(state, replicas, isr))
        if not number % ITEMS_PER_STEP:
            yield
    return partitions


def _new_partition(state: ControlState, replicas: list[BrokerId], isr: list[BrokerId]) -> PartitionRegistration:
    return PartitionRegistration(
        replicas=tuple(replicas),
        directories=tuple(state.image.default_directory(one) for one in replicas),
        isr=tuple(isr),
        leader=isr[0],
    )


def partition_records(
    state: ControlState, topic_id: bytes, first: int, partitions: Sequence[PartitionRegistration]
) -> Steps[list[Message]]:
    versions, elr_enabled = state.image.record_versions, state.image.elr_enabled
    records: list[Message] = []
    for number, partition in enumerate(partitions, first):
        records.append(partition.to_record(topic_id, number, versions, elr_enabled=elr_enabled))
        if not len(records) % ITEMS_PER_STEP:
            yield
    return records


# CreatePartitions


def plan_create_partitions(
    state: ControlState,
    request: messages.CreatePartitionsRequest,
    *,
    may_alter: Callable[[str], bool] = _anything,
    charge: Charge = free_of_charge,
) -> Steps[Plan[messages.CreatePartitionsResponse]]:
    counts = Counter(topic.name for topic in request.topics)
    results: dict[str, ApiError] = {}
    records: list[Message] = []
    for topic in request.topics:
        if counts[topic.name] > 1:
            results[topic.name] = ApiError(ErrorCode.INVALID_REQUEST, "the topic is listed twice in the request")
        elif not may_alter(topic.name):
            results[topic.name] = ApiError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        else:
            try:
                records += yield from _create_partitions(state, topic, charge)
                results[topic.name] = NO_ERROR
            except KafkaError as error:
                results[topic.name] = ApiError.of(error)
    try:
        check_size(records)
    except KafkaError as error:
        results = dict.fromkeys(results, ApiError.of(error))
        records = []
    return Plan([] if request.validate_only else records, _created_partitions(results))


def refused_growth(request: messages.CreatePartitionsRequest, error: ApiError) -> messages.CreatePartitionsResponse:
    """Refuse all topics of a request."""
    return _created_partitions({topic.name: error for topic in request.topics})


def _created_partitions(results: Mapping[str, ApiError]) -> messages.CreatePartitionsResponse:
    answers = [
        messages.CreatePartitionsResponse.CreatePartitionsTopicResult(
            name=name, error_code=error.code, error_message=error.message
        )
        for name, error in results.items()
    ]
    return messages.CreatePartitionsResponse(results=answers)


def _create_partitions(
    state: ControlState, wanted: messages.CreatePartitionsRequest.CreatePartitionsTopic, charge: Charge
) -> Steps[list[Message]]:
    topic = state.image.topics.get(wanted.name)
    if topic is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    present = len(topic.partitions)
    if wanted.count == present:
        raise KafkaError(ErrorCode.INVALID_PARTITIONS, f"topic {wanted.name} has {present} partition(s) already")
    if wanted.count < present:
        raise KafkaError(
            ErrorCode.INVALID_PARTITIONS,
            f"topic {wanted.name} has {present} partition(s); {wanted.count} would be fewer, and partitions cannot "
            "be removed",
        )
    more = wanted.count - present
    if wanted.assignments is not None and len(wanted.assignments) != more:
        raise _misassigned(f"{len(wanted.assignments)} assignment(s) are given for {more} new partition(s)")
    if more > MAX_RECORDS:
        raise KafkaError(
            ErrorCode.POLICY_VIOLATION,
            f"the request would create {more} partitions; the limit is {MAX_RECORDS}: split it into several",
        )
    charge(more)
    factor = len(topic.partitions[0].replicas)
    if wanted.assignments is None:
        assignments = yield from _placed(state, more, factor)
    else:
        assignments = [
            _checked_assignment(state, one.broker_ids, factor, present + place)
            for place, one in enumerate(wanted.assignments)
        ]
    partitions = yield from _new_partitions(state, assignments)
    return (yield from partition_records(state, topic.id, present, partitions))
