"""An incremental fetch returns the same changes as a full fetch, and waits as long.

A client with a session is compared, step by step, with one that asks for everything each time: after each response the
first one's picture of every partition equals the second one's response. Waiting fetches of both are answered by the
same events. Partitions are appended to, rolled, deleted from, lose and win their leader, go offline and come back.
"""

from __future__ import annotations

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from tailrace.model.errors import ErrorCode
from tailrace.model.ids import TopicPartition
from tailrace.protocol.messages import FetchResponse
from tailrace.replication.partition import Partition
from tests.simulation.node import Asked, Consumer, Node, broker, bytes_of, registration, want

COUNT = 6
NUMBERS = st.integers(0, COUNT - 1)


def picture(answer: FetchResponse.PartitionData) -> tuple[Any, ...]:
    """Return what a client remembers of a partition. A diverging epoch is an event: the client cuts its log and asks
    for another offset, and nothing is sent to take it back."""
    return (answer.error_code, answer.high_watermark, answer.log_start_offset)


class SessionMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.node = Node()
        self.node.know(broker(2))
        self.partitions: dict[int, Partition] = {}
        self.epochs: dict[int, int] = dict.fromkeys(range(COUNT), 0)
        self.lost: dict[int, Partition] = {}
        self.pictures: dict[int, tuple[Any, ...]] = {}
        self.waiting: tuple[Asked, Asked] | None = None
        self.session_answers: list[tuple[int, bytes]] = []

    @initialize(version=st.sampled_from([7, 10, 12, 13, 18]), isolation=st.sampled_from([0, 1]))
    def begin(self, version: int, isolation: int) -> None:
        self.version = version
        self.isolation = isolation
        for n in range(COUNT):
            replicas = (1, 2) if n % 2 else (1,)
            self.partitions[n] = self.node.host("topic", n, state=registration(1, replicas, (1,)))
        self.wants = {n: want(self.key(n), 0) for n in range(COUNT)}
        self.consumer = Consumer(
            self.node, self.wants.values(), version=version, isolation_level=isolation, min_bytes=1
        )
        self.poll()

    def key(self, n: int) -> TopicPartition:
        return TopicPartition("topic", n)

    def ask_for_everything(self, **fields: Any) -> Asked:
        return self.node.fetch(
            self.wants.values(), version=self.version, isolation_level=self.isolation, **{"min_bytes": 1, **fields}
        )

    # The client

    @rule(data=st.data())
    def poll(self, data: st.DataObject | None = None) -> None:
        """Let both fetch; the client with the session adds the response to its picture."""
        if self.waiting is not None:
            self.end_waiting()
        self.compare(self.consumer.poll(), self.ask_for_everything())

    @rule(min_bytes=st.sampled_from([1, 150, 400]))
    def wait(self, min_bytes: int) -> None:
        if self.waiting is not None:
            return
        incremental = self.consumer.poll(max_wait_ms=500, min_bytes=min_bytes)
        everything = self.ask_for_everything(max_wait_ms=500, min_bytes=min_bytes)
        self.waiting = (incremental, everything)
        self.run_pending()

    def run_pending(self) -> None:
        """Check that both requests still wait, or that both are answered."""
        if self.waiting is None:
            return
        incremental, everything = self.waiting
        assert incremental.is_waiting == everything.is_waiting
        if not incremental.is_waiting:
            self.waiting = None
            self.compare(incremental, everything)

    def end_waiting(self) -> None:
        self.node.pass_ms(500)
        self.run_pending()
        assert self.waiting is None

    def compare(self, incremental: Asked, everything: Asked) -> None:
        assert incremental.response.error_code == everything.response.error_code == ErrorCode.NONE
        if self.consumer.session == 0:
            self.consumer.session = incremental.response.session_id
        reported = {index: answer for (_, index), answer in incremental.partitions.items()}
        for index, answer in reported.items():
            self.pictures[index] = picture(answer)
        for (_, index), answer in everything.partitions.items():
            assert self.pictures[index] == picture(answer), index
            if answer.diverging_epoch.epoch >= 0:
                assert reported[index].diverging_epoch.epoch == answer.diverging_epoch.epoch
            if bytes_of(answer) or answer.error_code or answer.diverging_epoch.epoch >= 0:
                assert index in reported
            if index in reported:
                assert bytes_of(reported[index]) == bytes_of(answer)

    @rule(n=NUMBERS, data=st.data())
    def move(self, n: int, data: st.DataObject) -> None:
        """Request another offset: mostly the log end, as a client that has read everything does."""
        if self.waiting is not None:
            self.end_waiting()
        partition = self.partitions[n]
        end = partition.log.log_end_offset
        offset = data.draw(st.sampled_from([end, end, end, 0, partition.log.high_watermark, end + 1]))
        epoch = data.draw(st.sampled_from([-1, -1, self.epochs[n]])) if self.version >= 9 else -1
        last_epoch = data.draw(st.sampled_from([-1, -1, self.epochs[n]])) if self.version >= 12 else -1
        self.wants[n] = want(self.key(n), offset, epoch=epoch, last_epoch=last_epoch)
        self.consumer.move(self.key(n), offset, epoch=epoch, last_epoch=last_epoch)

    @rule(n=NUMBERS)
    def forget_and_ask_again(self, n: int) -> None:
        if self.waiting is not None:
            self.end_waiting()
        self.consumer.changed.pop(("topic", n), None)
        self.consumer.poll(forget=[self.key(n)])
        self.pictures.clear()
        self.consumer.changed = {("topic", m): one for m, one in self.wants.items()}
        # Responses to the other clients are not compared: a new session begins.
        self.consumer.session, self.consumer.epoch = 0, 0
        self.poll()

    # The broker

    def online(self, n: int) -> Partition | None:
        return self.node.partitions.get(self.key(n))

    def changed(self, n: int) -> None:
        self.node.check(self.key(n))
        self.run_pending()

    @rule(n=NUMBERS, count=st.integers(1, 3))
    def append(self, n: int, count: int) -> None:
        partition = self.online(n)
        if partition is not None and partition.is_leader:
            self.node.append(partition, *([b"value"] * count))
            self.run_pending()

    @rule(n=NUMBERS)
    def transaction(self, n: int) -> None:
        partition = self.online(n)
        if partition is not None and partition.is_leader:
            producer_id = partition.log.log_end_offset + 1_000
            self.node.append(partition, b"in", producer_id=producer_id, sequence=0, transactional=True)
            self.run_pending()
            self.node.end_transaction(partition, producer_id, commit=producer_id % 2 == 0)
            self.run_pending()

    @rule(n=NUMBERS)
    def roll(self, n: int) -> None:
        partition = self.online(n)
        if partition is not None:
            partition.log.roll(self.node.now_ms)
            self.changed(n)

    @rule(n=NUMBERS)
    def delete_records(self, n: int) -> None:
        partition = self.online(n)
        if partition is not None and partition.is_leader:
            partition.delete_records(-1, self.node.now_ms)
            self.changed(n)

    @rule(n=NUMBERS, leads=st.booleans())
    def change_leader(self, n: int, leads: bool) -> None:
        partition = self.online(n)
        if partition is not None:
            self.epochs[n] += 1
            replicas = (1, 2) if n % 2 else (1,)
            isr = (1,) if leads else (2,)
            state = registration(
                1 if leads else 2, replicas, isr, leader_epoch=self.epochs[n], partition_epoch=self.epochs[n]
            )
            self.node.apply(partition, state)
            self.run_pending()

    @rule(n=NUMBERS)
    def go_offline_or_come_back(self, n: int) -> None:
        partition = self.online(n)
        if partition is None:
            self.node.partitions.add(self.lost.pop(n))
        else:
            self.lost[n] = partition
            self.node.partitions.mark_offline(self.key(n))
        self.changed(n)

    @rule(ms=st.sampled_from([1, 100, 500]))
    def pass_time(self, ms: int) -> None:
        self.node.pass_ms(ms)
        self.run_pending()

    @invariant()
    def nothing_lingers(self) -> None:
        assert len(self.node.purgatory) == (0 if self.waiting is None else 2)
        assert len(self.node.sessions) <= 40


TestSessions = SessionMachine.TestCase
TestSessions.settings = settings(max_examples=40, stateful_step_count=40, deadline=None)
