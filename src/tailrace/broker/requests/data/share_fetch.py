"""ShareFetch (key 78), versions 1–2.

Behaviour
    Acquires records for a member of a share group, until the member acknowledges them or their lock expires. A request
    may contain acknowledgements, which are applied first. The response lists the acquired offset ranges. The batches
    around them are sent as ranges of files, and may contain records that other members have acquired.
    A member above its quota gets a response without partitions, but keeps the acquired records.
    If the session cache is full, the error response is sent after max_wait_ms.
Version notes
    2   an exact number of records (record limit mode); renewal of locks
"""

from __future__ import annotations

from typing import NamedTuple

from tailrace.broker.handling.throttling import Throttling
from tailrace.broker.replies import Replies
from tailrace.broker.requests.request_context import Request
from tailrace.broker.security.permissions import Permissions
from tailrace.broker.shares.share_acknowledgements import (
    Verdict,
    Verdicts,
    acknowledge_all,
    readable_error,
    session_key,
    topic_names,
)
from tailrace.broker.shares.shares import Shares
from tailrace.fetch.fetches import Fetches
from tailrace.metadata.controller.controller import Controller
from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.model.ids import TopicPartition
from tailrace.model.steps import Steps
from tailrace.protocol.messages import ShareFetchRequest, ShareFetchResponse
from tailrace.replication.current_leader import LeaderNode, current_leader
from tailrace.replication.hosted_partitions import HostedPartitions
from tailrace.shares.acquiring import AcquireMode
from tailrace.shares.share_fetch import Answers, ShareAnswer, ShareFetchParams, start_share_fetch
from tailrace.shares.share_sessions import (
    FINAL_EPOCH,
    INITIAL_EPOCH,
    SessionKey,
    SharedPartition,
    ShareSession,
    next_epoch,
)
from tailrace.waiting.purgatory import DelayedOperation, Purgatory

PartitionData = ShareFetchResponse.PartitionData
_LED_ELSEWHERE = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH)


def handle(
    request: Request,
    now_ms: int,
    *,
    controller: Controller,
    fetches: Fetches,
    partitions: HostedPartitions,
    permissions: Permissions,
    purgatory: Purgatory,
    replies: Replies,
    shares: Shares,
    throttling: Throttling,
) -> Steps[ShareFetchResponse | None]:
    body: ShareFetchRequest = request.body
    has_acknowledgements = any(one.acknowledgement_batches for topic in body.topics for one in topic.partitions)
    try:
        key = session_key(request, permissions=permissions, shares=shares)
        if body.is_renew_ack and (body.max_bytes or body.min_bytes or body.max_records or body.max_wait_ms):
            raise KafkaError(ErrorCode.INVALID_REQUEST)
        AcquireMode(body.share_acquire_mode)
        session = _session(
            request, key, has_acknowledgements=has_acknowledgements, controller=controller, shares=shares
        )
    except ValueError:
        return ShareFetchResponse(error_code=ErrorCode.UNKNOWN_SERVER_ERROR)
    except KafkaError as error:
        refusal = ShareFetchResponse(error_code=error.code)
        if error.code != ErrorCode.SHARE_SESSION_LIMIT_REACHED or body.max_wait_ms <= 0:
            return refusal
        waiting = _Refusal(replies, request.without_body(), refusal, now_ms + body.max_wait_ms)
        purgatory.watch(waiting, (), now_ms)
        replies.parked(request.context, waiting, request.client_id)
        return None
    parts = _Parts(controller, fetches, partitions, permissions, replies, shares, throttling)
    yield from _Exchange(parts, request, key, session).begin(has_acknowledgements, now_ms)
    return None


def _session(
    request: Request, key: SessionKey, *, has_acknowledgements: bool, controller: Controller, shares: Shares
) -> ShareSession:
    body: ShareFetchRequest = request.body
    sessions, epoch = shares.sessions, body.share_session_epoch
    wanted = topic_names(body.topics, controller=controller)
    if epoch == INITIAL_EPOCH:
        if has_acknowledgements:
            raise KafkaError(ErrorCode.INVALID_REQUEST)
        return sessions.begin(key, wanted, request.context.connection_id)
    session = sessions.continue_session(key, epoch)
    if epoch != FINAL_EPOCH:
        forgotten = [
            SharedPartition(bytes(topic.topic_id), partition)
            for topic in body.forgotten_topics_data
            for partition in topic.partitions
        ]
        session.update(wanted, forgotten)
    return session


class _Refusal(DelayedOperation):
    """A delayed error response, so that the client does not retry at once."""

    __slots__ = ("_replies", "_request", "_response")

    def __init__(self, replies: Replies, request: Request, response: ShareFetchResponse, deadline_ms: int) -> None:
        super().__init__(deadline_ms)
        self._replies = replies
        self._request = request
        self._response = response

    def try_complete(self, now_ms: int) -> bool:
        return False

    def expire(self, now_ms: int) -> None:
        self._replies.answer(self._request, self._response, now_ms)


class _Parts(NamedTuple):
    """The services that a share fetch needs."""

    controller: Controller
    fetches: Fetches
    partitions: HostedPartitions
    permissions: Permissions
    replies: Replies
    shares: Shares
    throttling: Throttling


class _Exchange:
    """A request whose records are fetched while its acknowledgements are persisted."""

    def __init__(self, parts: _Parts, request: Request, key: SessionKey, session: ShareSession) -> None:
        self._parts = parts
        self._request = request
        self._key = key
        self._session = session
        self._epoch: int = request.body.share_session_epoch
        self._names = {one: known.topic for one, known in session.partitions.items()}
        self._answers: Answers | None = None
        self._verdicts: Verdicts | None = {}

    def begin(self, has_acknowledgements: bool, now_ms: int) -> Steps[None]:
        parts, request = self._parts, self._request
        body: ShareFetchRequest = request.body
        if has_acknowledgements:
            self._verdicts = None
            now_ms = yield from acknowledge_all(
                request,
                self._key,
                body.topics,
                self._acknowledged,
                now_ms,
                controller=parts.controller,
                permissions=parts.permissions,
                shares=parts.shares,
            )
        refused: Answers = {}
        readable: dict[SharedPartition, str] = {}
        if self._epoch != FINAL_EPOCH and not body.is_renew_ack:
            for partition, topic in self._names.items():
                error = readable_error(
                    request, partition, topic, controller=parts.controller, permissions=parts.permissions
                )
                if error is not None:
                    refused[partition] = ShareAnswer(error)
                elif topic is not None:
                    readable[partition] = topic
        params = self._params(body)
        self._request = request.without_body()
        fetch = start_share_fetch(
            parts.shares.partitions,
            params,
            readable,
            self._epoch,
            lambda answers, now_ms: self._fetched({**answers, **refused}, now_ms),
            now_ms,
        )
        if fetch is not None and fetch.is_waiting:
            parts.replies.parked(request.context, fetch, request.client_id)

    def _params(self, body: ShareFetchRequest) -> ShareFetchParams:
        parts = self._parts
        max_bytes = min(body.max_bytes, parts.fetches.max_bytes, parts.throttling.fetch_bytes_max(self._request))
        return ShareFetchParams(
            self._key.group_id,
            self._key.member_id,
            body.max_wait_ms,
            min(body.min_bytes, max_bytes),
            max_bytes,
            body.max_records,
            body.batch_size,
            AcquireMode(body.share_acquire_mode),
        )

    def _acknowledged(self, verdicts: Verdicts, now_ms: int) -> None:
        self._verdicts = verdicts
        if self._answers is not None:
            self._answer(self._answers, verdicts, now_ms)

    def _fetched(self, answers: Answers, now_ms: int) -> None:
        self._answers = answers
        if self._verdicts is not None:
            self._answer(answers, self._verdicts, now_ms)

    # Records are fetched and acknowledgements persisted

    def _answer(self, answers: Answers, verdicts: Verdicts, now_ms: int) -> None:
        parts, throttling = self._parts, self._parts.throttling
        response, throttle_ms = self._response(answers), 0
        if throttling.is_on:
            throttle_ms = throttling.of_fetch(self._request, self._size(response), now_ms)
            if throttle_ms:
                response = self._response({})
        if not throttle_ms:
            self._apply_session(response)
        self._count_bytes(response)
        _add_verdicts(response, verdicts)
        if self._epoch == FINAL_EPOCH:
            parts.shares.release_session(self._key, now_ms)
        parts.replies.answer_throttled(self._request, response, now_ms, throttle_ms)

    def _response(self, answers: Answers) -> ShareFetchResponse:
        topics: dict[bytes, ShareFetchResponse.ShareFetchableTopicResponse] = {}
        nodes: dict[int, LeaderNode] = {}
        for partition, answer in answers.items():
            topic = topics.get(partition.topic_id)
            if topic is None:
                topic = topics[partition.topic_id] = ShareFetchResponse.ShareFetchableTopicResponse(
                    topic_id=partition.topic_id
                )
            data = PartitionData(
                partition_index=partition.partition,
                error_code=answer.error_code,
                records=answer.records if answer.records is not None else b"",
                acquired_records=[
                    ShareFetchResponse.AcquiredRecords(first_offset=first, last_offset=last, delivery_count=count)
                    for first, last, count in answer.acquired
                ],
            )
            if answer.error_code in _LED_ELSEWHERE:
                self._add_leader(partition, data, nodes)
            topic.partitions.append(data)
        return ShareFetchResponse(
            acquisition_lock_timeout_ms=self._parts.shares.settings(self._key.group_id).record_lock_duration_ms,
            responses=list(topics.values()),
            node_endpoints=[
                ShareFetchResponse.NodeEndpoint(node_id=node.id, host=node.host, port=node.port, rack=node.rack)
                for node in nodes.values()
            ],
        )

    def _add_leader(self, partition: SharedPartition, data: PartitionData, nodes: dict[int, LeaderNode]) -> None:
        parts, topic = self._parts, self._names.get(partition)
        if topic is None:
            return
        place = TopicPartition(topic, partition.partition)
        leader = current_leader(place, parts.partitions, parts.controller.image, self._request.context.listener)
        data.current_leader = ShareFetchResponse.LeaderIdAndEpoch(
            leader_id=leader.leader_id, leader_epoch=leader.leader_epoch
        )
        if leader.node is not None:
            nodes[leader.leader_id] = leader.node

    def _apply_session(self, response: ShareFetchResponse) -> None:
        """Leave out the partitions without records or errors, unless this is a session's first or last response."""
        if self._epoch in (INITIAL_EPOCH, FINAL_EPOCH):
            return
        session = self._session
        if session.epoch != next_epoch(self._epoch):
            response.error_code = ErrorCode.INVALID_SHARE_SESSION_EPOCH
            response.responses = []
            return
        for topic in response.responses:
            topic.partitions = [
                one
                for one in topic.partitions
                if session.is_in_response(
                    SharedPartition(topic.topic_id, one.partition_index),
                    has_records=bool(one.records),
                    has_error=one.error_code != ErrorCode.NONE,
                )
            ]
        response.responses = [topic for topic in response.responses if topic.partitions]

    def _size(self, response: ShareFetchResponse) -> int:
        parts: list[bytes] = []
        response.write(parts, self._request.version)
        return 4 + sum(map(len, parts))

    def _count_bytes(self, response: ShareFetchResponse) -> None:
        traffic = self._parts.partitions.traffic
        for topic in response.responses:
            for one in topic.partitions:
                name = self._names.get(SharedPartition(topic.topic_id, one.partition_index))
                if one.records and name is not None and (counts := traffic.get(name)) is not None:
                    counts.bytes_out += len(one.records)


def _add_verdicts(response: ShareFetchResponse, verdicts: Verdicts) -> None:
    """Add the results of acknowledgements to the partitions of the response. Add missing partitions."""
    missing: dict[bytes, dict[int, Verdict]] = {}
    for partition, verdict in verdicts.items():
        missing.setdefault(partition.topic_id, {})[partition.partition] = verdict
    topics = {topic.topic_id: topic for topic in response.responses}
    for topic_id, of_topic in missing.items():
        topic = topics.get(topic_id)
        if topic is None:
            topic = ShareFetchResponse.ShareFetchableTopicResponse(topic_id=topic_id)
            response.responses.append(topic)
        for one in topic.partitions:
            found = of_topic.pop(one.partition_index, None)
            if found is not None:
                one.acknowledge_error_code, one.acknowledge_error_message = found
        topic.partitions += [
            PartitionData(
                partition_index=index,
                acknowledge_error_code=verdict.code,
                acknowledge_error_message=verdict.message,
                records=b"",
            )
            for index, verdict in of_topic.items()
        ]
