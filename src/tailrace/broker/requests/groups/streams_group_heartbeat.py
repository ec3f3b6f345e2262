"""StreamsGroupHeartbeat (key 88), version 0.

Behaviour
    A member of a streams group, a thread of a Kafka Streams application, sends only this request (KIP-1071). It joins
    with epoch 0 and the application's topology, reports its tasks, and gets its epoch and its assigned tasks. It leaves
    with epoch -1. Missing internal topics of the application (repartition, changelog) are created.
Not implemented
    static members, warmup tasks, task offsets and regular expressions for source topics are refused, as by Kafka 4.3
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from tailrace.broker.cluster.forwarding import Forwarding
from tailrace.broker.coordination.groups import Groups
from tailrace.broker.handling.long_requests import LongRequests
from tailrace.broker.handling.pending_answer import PendingAnswer
from tailrace.broker.handling.throttling import Throttling
from tailrace.broker.replies import Replies
from tailrace.broker.requests.request_context import Request
from tailrace.broker.requests.topics.topic_view import INTERNAL_TOPICS
from tailrace.broker.security.authorizer import CLUSTER_NAME, AclResource, Operation
from tailrace.broker.security.permissions import Permissions
from tailrace.coordinator.groups.epoch.epoch_member import JOIN_EPOCH, LEAVE_STATIC_EPOCH
from tailrace.coordinator.groups.streams.configured_topology import InternalTopic, Status
from tailrace.coordinator.groups.streams.streams_heartbeat import StreamsHeartbeat, StreamsHeartbeatResult
from tailrace.coordinator.groups.streams.streams_member import Endpoint, Tasks, TaskSets
from tailrace.coordinator.groups.streams.streams_topology import stored_topology
from tailrace.metadata.controller.local_controller import LocalController
from tailrace.metadata.decisions.topic_names import name_problem
from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.model.steps import ITEMS_PER_STEP, Steps
from tailrace.protocol.messages import CreateTopicsRequest, StreamsGroupHeartbeatRequest, StreamsGroupHeartbeatResponse

_SHOWN_ERRORS_MAX = 3


def handle(
    request: Request,
    now_ms: int,
    *,
    forwarding: Forwarding | None,
    groups: Groups,
    local_controller: LocalController | None,
    long_requests: LongRequests,
    permissions: Permissions,
    replies: Replies,
    throttling: Throttling,
) -> StreamsGroupHeartbeatResponse | None:
    body: StreamsGroupHeartbeatRequest = request.body
    if not groups.is_enabled("streams"):
        return StreamsGroupHeartbeatResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    if not permissions.allows(request, Operation.READ, AclResource.GROUP, body.group_id):
        return StreamsGroupHeartbeatResponse(error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED)
    if body.topology is not None:
        topics = _topics(body.topology)
        _check_topics(topics)
        if not all(permissions.allows(request, Operation.DESCRIBE, AclResource.TOPIC, topic) for topic in topics):
            return StreamsGroupHeartbeatResponse(error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    _check_features(body)
    _check(body)
    answer = PendingAnswer(replies, request)
    asker = request.without_body()
    beat = _heartbeat(body, request)

    def done(result: StreamsHeartbeatResult, now_ms: int) -> None:
        if not result.topics_to_create:
            answer(result.response, now_ms)
            return
        creation = _create_topics(
            asker,
            result.topics_to_create,
            result.response,
            now_ms,
            forwarding=forwarding,
            local_controller=local_controller,
            permissions=permissions,
            throttling=throttling,
        )
        long_requests.start(asker, _then_answer(creation, answer, result.response, now_ms), now_ms)

    def refuse(error: KafkaError, now_ms: int) -> None:
        is_unexpected = error.code is ErrorCode.UNKNOWN_SERVER_ERROR  # Kafka sends no message for it
        message = None if is_unexpected else error.args[0]
        answer(StreamsGroupHeartbeatResponse(error_code=error.code, error_message=message), now_ms)

    groups.write(beat.group_id, lambda shard: shard.streams.heartbeat(beat, now_ms), done, refuse, now_ms)
    return None


def _then_answer(
    work: Steps[None], answer: PendingAnswer, response: StreamsGroupHeartbeatResponse, now_ms: int
) -> Steps[None]:
    yield from work
    answer(response, now_ms)


def _heartbeat(body: StreamsGroupHeartbeatRequest, request: Request) -> StreamsHeartbeat:
    endpoint = body.user_endpoint
    owned = None
    if body.active_tasks is not None and body.standby_tasks is not None and body.warmup_tasks is not None:
        owned = Tasks(_sets(body.active_tasks), _sets(body.standby_tasks), _sets(body.warmup_tasks))
    return StreamsHeartbeat(
        group_id=body.group_id,
        member_id=body.member_id,
        member_epoch=body.member_epoch,
        client_id=request.client_id or "",
        client_host=f"/{request.context.client_host}",
        endpoint_epoch=body.endpoint_information_epoch,
        rack_id=body.rack_id,
        rebalance_timeout_ms=body.rebalance_timeout_ms,
        topology=None if body.topology is None else stored_topology(body.topology),
        owned=owned,
        process_id=body.process_id,
        user_endpoint=None if endpoint is None else Endpoint(endpoint.host, endpoint.port),
        client_tags=None if body.client_tags is None else {tag.key: tag.value for tag in body.client_tags},
        asks_shutdown=body.shutdown_application,
    )


def _sets(task_ids: Iterable[StreamsGroupHeartbeatRequest.TaskIds]) -> TaskSets:
    return {tasks.subtopology_id: frozenset(tasks.partitions) for tasks in task_ids}


# Validation


def _topics(topology: StreamsGroupHeartbeatRequest.Topology) -> list[str]:
    """Return the distinct topics of a topology."""
    topics: list[str] = []
    for one in topology.subtopologies:
        topics += [*one.source_topics, *one.repartition_sink_topics]
        topics += [info.name for info in (*one.repartition_source_topics, *one.state_changelog_topics)]
    return list(dict.fromkeys(topics))


def _check_topics(topics: Sequence[str]) -> None:
    prohibited = [topic for topic in topics if topic in INTERNAL_TOPICS]
    if prohibited:
        raise KafkaError(
            ErrorCode.STREAMS_INVALID_TOPOLOGY,
            f"Use of Kafka internal topics {','.join(prohibited)} in a Kafka Streams topology is prohibited.",
        )
    invalid = [topic for topic in topics if name_problem(topic) is not None]
    if invalid:
        raise KafkaError(
            ErrorCode.STREAMS_INVALID_TOPOLOGY, f"Topic names {','.join(invalid)} are not valid topic names."
        )


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise KafkaError(ErrorCode.INVALID_REQUEST, message)


def _check_features(body: StreamsGroupHeartbeatRequest) -> None:
    """Raise KafkaError for features of the protocol that Kafka 4.3 does not support yet."""
    _require(body.instance_id is None, "Static membership is not yet supported.")
    _require(body.task_offsets is None, "TaskOffsets are not supported yet.")
    _require(body.task_end_offsets is None, "TaskEndOffsets are not supported yet.")
    _require(not body.warmup_tasks, "WarmupTasks are not supported yet.")
    for one in body.topology.subtopologies if body.topology is not None else ():
        _require(not one.source_topic_regex, "Regular expressions for source topics are not supported yet.")


def _check(body: StreamsGroupHeartbeatRequest) -> None:
    """Raise KafkaError for a missing or invalid field."""
    for name, text in (("MemberId", body.member_id), ("GroupId", body.group_id), ("RackId", body.rack_id)):
        _require(text is None or bool(text.strip()), f"{name} can't be empty.")
    epoch = body.member_epoch
    kinds = (("Active", body.active_tasks), ("Standby", body.standby_tasks), ("Warmup", body.warmup_tasks))
    if epoch == JOIN_EPOCH:
        _require(body.rebalance_timeout_ms != -1, "RebalanceTimeoutMs must be provided in first request.")
        for kind, tasks in kinds:
            _require(tasks is not None and not tasks, f"{kind}Tasks must be empty when (re-)joining.")
        if body.topology is None:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "Topology must be non-null when (re-)joining.")
        for one in body.topology.subtopologies:
            for info in one.state_changelog_topics:
                if info.partitions != 0:
                    raise KafkaError(
                        ErrorCode.STREAMS_INVALID_TOPOLOGY,
                        f"Changelog topic {info.name} must have an undefined partition count, but it is set to "
                        f"{info.partitions}.",
                    )
    else:
        _require(epoch != LEAVE_STATIC_EPOCH, "InstanceId can't be null.")
        _require(epoch > LEAVE_STATIC_EPOCH, f"MemberEpoch is {epoch}, but must be greater than or equal to -2.")
    if any(tasks is not None for _, tasks in kinds):
        _require(all(tasks is not None for _, tasks in kinds), "If one task-type is non-null, all must be non-null.")
    _require(epoch == JOIN_EPOCH or body.topology is None, "Topology can only be provided when (re-)joining.")


# Topics of the application


def _create_topics(
    request: Request,
    topics: Mapping[str, InternalTopic],
    response: StreamsGroupHeartbeatResponse,
    now_ms: int,
    *,
    forwarding: Forwarding | None,
    local_controller: LocalController | None,
    permissions: Permissions,
    throttling: Throttling,
) -> Steps[None]:
    """Create missing topics with the rights of the client, with pauses. Errors are added to the response's status."""
    status = next(one for one in response.status or () if one.status_code == Status.MISSING_INTERNAL_TOPICS)
    if not permissions.allows(request, Operation.CREATE, AclResource.CLUSTER, CLUSTER_NAME):
        refused = [
            name for name in topics if not permissions.allows(request, Operation.CREATE, AclResource.TOPIC, name)
        ]
        if refused:
            status.status_detail += f"; Unauthorized to CREATE on topics {', '.join(refused)}."
            return
    wanted = [
        CreateTopicsRequest.CreatableTopic(
            name=topic.name,
            num_partitions=topic.partitions,
            replication_factor=topic.replication_factor or -1,
            configs=[
                CreateTopicsRequest.CreatableTopicConfig(name=name, value=value)
                for name, value in topic.configs.items()
            ],
        )
        for topic in topics.values()
    ]
    if forwarding is not None:
        for number, one in enumerate(wanted):
            forwarding.make_topic(one, request, now_ms)
            if number % ITEMS_PER_STEP == ITEMS_PER_STEP - 1:
                now_ms = yield
        return
    charge = throttling.mutations(request, now_ms, strict=True).charge
    assert local_controller is not None, "a broker that does not forward has a local controller"
    creation = local_controller.topics.begin_create_topics(
        CreateTopicsRequest(topics=wanted),
        now_ms,
        may_create=lambda _: True,
        may_describe=lambda _: True,
        charge=charge,
    )
    results = (yield from creation).topics
    done = (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS)
    failed = [f"{one.name} ({one.error_message})" for one in results if one.error_code not in done]
    if failed:
        more = f" and {len(failed) - _SHOWN_ERRORS_MAX} more" if len(failed) > _SHOWN_ERRORS_MAX else ""
        status.status_detail += f"; Creation failed: {', '.join(failed[:_SHOWN_ERRORS_MAX])}{more}."
