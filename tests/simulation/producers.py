"""Producers in the simulated cluster: plain ones, and idempotent ones that send a batch until it is acknowledged."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from tailrace.model.errors import ErrorCode
from tailrace.model.ids import TopicPartition
from tailrace.replication.delayed_produce import DelayedProduce
from tailrace.replication.produce import append_produced
from tests.simulation.cluster import Cluster, SimulatedBroker
from tests.simulation.network import Host
from tests.support.batches import batch

PRODUCE_TIMEOUT_MS = 700


class Produced(NamedTuple):
    error: int
    base_offset: int


def produce_at(
    one: SimulatedBroker, key: TopicPartition, records: bytearray, acks: int, answer: Callable[[Produced], None]
) -> None:
    """What a broker does with a Produce request."""
    node = one.now()
    part = append_produced(node.partitions, key, records, required_acks=acks, now_ms=node.now_ms)
    node.check(key)
    if acks != -1 or not part.is_appended:
        answer(Produced(part.response.error_code, part.response.base_offset))
        return
    operation = DelayedProduce(
        [part],
        node.partitions,
        node.now_ms + 1_000,
        lambda *_: answer(Produced(part.response.error_code, part.response.base_offset)),
    )
    node.purgatory.try_complete_or_watch(operation, operation.keys(), node.now_ms)


def leader_of(cluster: Cluster, key: TopicPartition) -> SimulatedBroker | None:
    """A broker that takes itself for the leader; it may be mistaken."""
    leading = [one for one in cluster.alive() if (p := one.partition(key)) is not None and p.is_leader]
    return cluster.random.choice(leading) if leading else None


class IdempotentProducer(Host):
    def __init__(
        self, cluster: Cluster, producer_id: int, key: TopicPartition, acknowledged: Callable[[int, bytes], None]
    ) -> None:
        super().__init__(producer_id)
        self._cluster = cluster
        self._network = cluster.network
        self.key = key
        self._acknowledged = acknowledged
        self.sequence = 0
        self.last_offset = -1  # of what was acknowledged
        self.is_ending = False
        self._network.after(1, self, self._send)

    def value(self, sequence: int) -> bytes:
        return b"%d:%d" % (self.host_id, sequence)

    def _send(self) -> None:
        if self.is_ending:
            return
        leader = leader_of(self._cluster, self.key)
        if leader is None:
            self._again()
            return
        records = batch(
            self.value(self.sequence), timestamp=self._network.now_ms, producer_id=self.host_id, sequence=self.sequence
        )
        self._network.request(
            self,
            leader,
            lambda answer: produce_at(leader, self.key, records, -1, answer),
            self._answered,
            self._again,
            PRODUCE_TIMEOUT_MS,
        )

    def _answered(self, answer: Produced) -> None:
        if answer.error != ErrorCode.NONE:
            self._again()
            return
        self._acknowledged(answer.base_offset, self.value(self.sequence))
        self.last_offset = answer.base_offset
        self.sequence += 1
        self._again()

    def _again(self) -> None:
        self._network.after(self._network.random.choice([1, 10, 40, 90]), self, self._send)
