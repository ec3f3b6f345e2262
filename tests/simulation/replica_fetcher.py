"""ReplicaFetcher: what a follower does with real Fetch requests, one leader at a time, in sessions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tailrace.log.leader_epochs import EpochEnd
from tailrace.model.errors import ErrorCode
from tailrace.model.ids import TopicPartition
from tailrace.protocol.messages import FetchResponse
from tailrace.replication.follower import FollowerRole
from tests.simulation.node import LATEST_VERSION, Asked, Want, request_for, want

if TYPE_CHECKING:
    from tests.simulation.cluster import SimulatedBroker

MAX_WAIT_MS = 100
TIMEOUT_MS = 400


class LeaderSession:
    """The conversation with one leader's process."""

    def __init__(self, leader: SimulatedBroker) -> None:
        self.leader = leader
        self.id = 0
        self.epoch = 0
        self.sent: dict[TopicPartition, Want] = {}  # what the session holds
        self.is_busy = False


class ReplicaFetcher:
    def __init__(self, broker: SimulatedBroker) -> None:
        self.broker = broker
        self.sessions: dict[int, LeaderSession] = {}

    def step(self) -> None:
        """Ask every leader that is not being asked."""
        for leader_id in self.broker.cluster.brokers:
            if leader_id != self.broker.broker_id:
                self._ask(leader_id)

    def _wants(self, leader_id: int) -> dict[TopicPartition, Want]:
        wants = {}
        for partition in self.broker.node.partitions:
            role = partition.role
            if isinstance(role, FollowerRole) and role.leader_id == leader_id:
                wants[partition.key] = want(
                    partition,
                    role.fetch_offset,
                    epoch=role.leader_epoch,
                    last_epoch=role.last_fetched_epoch,
                    log_start=partition.log.log_start_offset,
                    max_bytes=700,
                )
        return wants

    def _ask(self, leader_id: int) -> None:
        cluster = self.broker.cluster
        leader = cluster.brokers[leader_id]
        session = self.sessions.get(leader_id)
        if session is None or session.leader is not leader:
            session = self.sessions[leader_id] = LeaderSession(leader)
        wants = self._wants(leader_id)
        if session.is_busy or not leader.is_alive or (not wants and not session.sent):
            return
        changed = [one for key, one in wants.items() if session.sent.get(key) != one]
        forgotten = [key for key in session.sent if key not in wants]
        if session.epoch == 0:
            changed, forgotten = list(wants.values()), []
        request = request_for(
            changed,
            forget=forgotten,
            session=session.id,
            epoch=session.epoch,
            replica=self.broker.broker_id,
            replica_epoch=self.broker.epoch,
            max_wait_ms=MAX_WAIT_MS,
            max_bytes=2_000,
        )
        session.is_busy = True
        session.sent = wants
        roles = {key: self._role(key) for key in wants}

        def arrive() -> None:
            if leader.is_alive:
                asked = Answering(lambda response: cluster.send(self.broker, lambda: take(response), lost))
                asked.fetch = leader.now().fetches.start(request, LATEST_VERSION, leader.node.now_ms, asked.take)
                cluster.after(MAX_WAIT_MS, lambda: leader.now() if leader.is_alive else None)

        def take(response: FetchResponse) -> None:
            if self.sessions.get(leader_id) is session and session.is_busy:
                session.is_busy = False
                self._take(session, response, wants, roles)

        def lost() -> None:
            """No answer: a new connection, and a new session."""
            if self.sessions.get(leader_id) is session and session.is_busy:
                self.sessions[leader_id] = LeaderSession(leader)

        cluster.send(self.broker, arrive, lost)
        cluster.after(TIMEOUT_MS, lost if cluster.random.random() < 0.2 else _nothing)
        cluster.after(4 * TIMEOUT_MS, lambda: lost() if not leader.is_alive else None)

    def _role(self, key: TopicPartition) -> object:
        partition = self.broker.partition(key)
        return None if partition is None else partition.role

    def _take(
        self,
        session: LeaderSession,
        response: FetchResponse,
        wants: dict[TopicPartition, Want],
        roles: dict[TopicPartition, object],
    ) -> None:
        if response.error_code:
            self.sessions[session.leader.broker_id] = LeaderSession(session.leader)
            return
        if session.epoch == 0:
            session.id = response.session_id
        session.epoch = session.epoch + 1 if session.id else 0
        for topic in response.responses:
            for answer in topic.partitions:
                key = TopicPartition("topic", answer.partition_index)
                partition = self.broker.partition(key)
                # An answer to an earlier role, or from before a truncation, is of no use.
                if (
                    partition is not None
                    and key in wants
                    and partition.role is roles[key]
                    and partition.log.log_end_offset == wants[key].offset
                ):
                    self._take_partition(session, key, answer)

    def _take_partition(self, session: LeaderSession, key: TopicPartition, answer: FetchResponse.PartitionData) -> None:
        node = self.broker.now()
        partition = node.partitions.find(key)
        role = partition.role
        assert isinstance(role, FollowerRole)
        if answer.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
            leader = session.leader.partition(key)
            if leader is not None and leader.fencing_error(role.leader_epoch, leader_only=True) is None:
                role.restart_at(leader.log.log_start_offset, leader.log.log_end_offset, node.now_ms)
        elif answer.diverging_epoch.epoch >= 0:
            end = EpochEnd(answer.diverging_epoch.epoch, answer.diverging_epoch.end_offset)
            role.truncate_at(end, node.now_ms)
        elif not answer.error_code:
            role.append(
                bytes(answer.records or b""),
                high_watermark=answer.high_watermark,
                leader_log_start_offset=answer.log_start_offset,
                now_ms=node.now_ms,
            )
        node.check(partition)


class Answering(Asked):
    """Sends the answer, read as the other side reads it."""

    def __init__(self, send: Any) -> None:
        super().__init__(LATEST_VERSION)
        self._send = send

    def take(self, fetch: Any, now_ms: int) -> None:
        response = fetch.response(now_ms)
        self._send(FetchResponse.decode(self.response_bytes(response), LATEST_VERSION))


def _nothing() -> None:
    pass
