"""Producers in the simulated cluster: idempotent and transactional ones, which resend until they are acknowledged."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from tailrace.model.errors import ErrorCode
from tailrace.model.ids import TopicPartition
from tailrace.records.checks.validation import Origin
from tailrace.replication.delayed_produce import DelayedProduce
from tests.simulation.cluster import Cluster
from tests.simulation.network import Host
from tests.simulation.simulated_broker import SimulatedBroker
from tests.support.batches import batch, end_marker
from tests.support.produced import append_produced

PRODUCE_TIMEOUT_MS = 700
IN_FLIGHT = 5
TRANSACTION_VERSION = 2  # each transaction has its own producer epoch, so that late batches are refused


class Produced(NamedTuple):
    error: int
    base_offset: int


def produce_at(
    one: SimulatedBroker,
    key: TopicPartition,
    records: bytearray,
    acks: int,
    answer: Callable[[Produced], None],
    origin: Origin = Origin.CLIENT,
) -> None:
    """Handle a Produce request, or a coordinator's marker, at a broker."""
    node = one.now()
    part = append_produced(
        node.partitions,
        key,
        records,
        required_acks=acks,
        now_ms=node.now_ms,
        origin=origin,
        transaction_version=TRANSACTION_VERSION,
    )
    node.check(key)
    if acks != -1 or not part.is_appended:
        answer(Produced(part.error, part.first_offset))
        return

    def decided(operation: DelayedProduce, now_ms: int) -> None:
        if part.is_appended:
            partition = one.partition(key)
            leader = partition.leader if partition is not None else None
            in_sync = 0 if leader is None else len(leader.isr.maximal)
            one.cluster.acknowledged.append((key, part.first_offset, in_sync))
        answer(Produced(part.error, part.first_offset))

    operation = DelayedProduce([part], node.partitions, node.now_ms + 1_000, decided)
    node.purgatory.try_complete_or_watch(operation, operation.keys(), node.now_ms)


def leader_of(cluster: Cluster, key: TopicPartition) -> SimulatedBroker | None:
    """Return a broker that considers itself the leader, even if it has been deposed."""
    leading = [one for one in cluster.alive() if (p := one.partition(key)) is not None and p.is_leader]
    return cluster.random.choice(leading) if leading else None


class PersistentProducer(Host):
    """A producer of one batch at a time to one partition. Each batch is resent until it is acknowledged."""

    def __init__(
        self, cluster: Cluster, producer_id: int, key: TopicPartition, acknowledged: Callable[[int, bytes], None]
    ) -> None:
        super().__init__(producer_id)
        self._cluster = cluster
        self._network = cluster.network
        self.key = key
        self._acknowledged = acknowledged
        self.number = 0  # number in the value of the batch in flight
        self.epoch = 0
        self.sequence = 0
        self.acknowledged_offset = -1  # the producer will not resend any batch before this offset
        self.is_ending = False
        self._network.after(1, self, self._go_on)

    def value(self, number: int) -> bytes:
        return b"%d:%d" % (self.host_id, number)

    def _go_on(self) -> None:
        raise NotImplementedError

    def _send_next(self, done: Callable[[int], None], *, transactional: bool = False) -> None:
        value = self.value(self.number)
        records = batch(
            value,
            timestamp=self._network.now_ms,
            producer_id=self.host_id,
            producer_epoch=self.epoch,
            sequence=self.sequence,
            transactional=transactional,
        )

        def acknowledged(offset: int) -> None:
            self._acknowledged(offset, value)
            self.number += 1
            self.sequence += 1
            done(offset)

        self._send(records, Origin.CLIENT, acknowledged)

    def _send(self, records: bytearray, origin: Origin, done: Callable[[int], None]) -> None:
        def again() -> None:
            self._soon(lambda: self._send(records, origin, done))

        def answered(answer: Produced) -> None:
            if answer.error == ErrorCode.NONE:
                done(answer.base_offset)
            else:
                again()

        if self.is_ending:
            return
        leader = leader_of(self._cluster, self.key)
        if leader is None:
            again()
            return
        self._network.request(
            self,
            leader,
            lambda answer: produce_at(leader, self.key, bytearray(records), -1, answer, origin),
            answered,
            again,
            PRODUCE_TIMEOUT_MS,
        )

    def _soon(self, action: Callable[[], None]) -> None:
        self._network.after(self._network.random.choice([1, 10, 40, 90]), self, action)


class IdempotentProducer(PersistentProducer):
    def _go_on(self) -> None:
        def done(offset: int) -> None:
            self.acknowledged_offset = offset
            self._soon(self._go_on)

        self._send_next(done)


class PipelinedProducer(PersistentProducer):
    """A producer with up to five batches in flight on one connection. Unacknowledged batches are resent."""

    def __init__(
        self, cluster: Cluster, producer_id: int, key: TopicPartition, acknowledged: Callable[[int, bytes], None]
    ) -> None:
        super().__init__(cluster, producer_id, key, acknowledged)
        self._done: set[int] = set()

    def _go_on(self) -> None:
        leader = None if self.is_ending else leader_of(self._cluster, self.key)
        if leader is None:
            self._soon(self._go_on)
            return
        # A broker remembers a producer's last five batches: every unacknowledged batch must be among them.
        wanted = [one for one in range(self.number, self.number + IN_FLIGHT) if one not in self._done]
        self._network.request(
            self,
            leader,
            lambda answer: self._arrive(leader, wanted, answer),
            self._answered,
            lambda: self._soon(self._go_on),
            PRODUCE_TIMEOUT_MS,
        )

    def _arrive(
        self, leader: SimulatedBroker, wanted: list[int], answer: Callable[[dict[int, Produced]], None]
    ) -> None:
        """Append all batches, or only the first few if the connection breaks."""
        answers: dict[int, Produced] = {}
        arrived = wanted if self._network.random.random() < 0.9 else wanted[:2]

        def one_answered(number: int, produced: Produced) -> None:
            answers[number] = produced
            if len(answers) == len(wanted):
                answer(answers)

        for number in arrived:
            records = batch(
                self.value(number), timestamp=self._network.now_ms, producer_id=self.host_id, sequence=number
            )
            produce_at(leader, self.key, records, -1, partial(one_answered, number))

    def _answered(self, answers: dict[int, Produced]) -> None:
        for number, produced in answers.items():
            if produced.error == ErrorCode.NONE:
                self._acknowledged(produced.base_offset, self.value(number))
                self._done.add(number)
        while self.number in self._done:
            self._done.remove(self.number)
            self.acknowledged_offset = (
                answers[self.number].base_offset if self.number in answers else self.acknowledged_offset
            )
            self.number += 1
        self._soon(self._go_on)


class TransactionalProducer(PersistentProducer):
    """A producer of transactions: one to three batches, then a marker, as the coordinator would write it."""

    def __init__(
        self, cluster: Cluster, producer_id: int, key: TopicPartition, acknowledged: Callable[[int, bytes], None]
    ) -> None:
        super().__init__(cluster, producer_id, key, acknowledged)
        self.committed: set[bytes] = set()  # values of transactions that were to be committed
        self.aborted: set[bytes] = set()

    def _go_on(self) -> None:
        random = self._network.random
        self._write(random.randint(1, 3), [], commit=random.random() < 0.5)

    def _write(self, left: int, written: list[bytes], *, commit: bool) -> None:
        if left:
            written.append(self.value(self.number))
            self._send_next(
                lambda _: self._soon(lambda: self._write(left - 1, written, commit=commit)), transactional=True
            )
            return
        (self.committed if commit else self.aborted).update(written)
        self.epoch += 1
        self.sequence = 0
        marker = end_marker(self.host_id, producer_epoch=self.epoch, commit=commit, timestamp=self._network.now_ms)
        self._send(marker, Origin.COORDINATOR, self._ended)

    def _ended(self, offset: int) -> None:
        self.acknowledged_offset = offset
        self._soon(self._go_on)
