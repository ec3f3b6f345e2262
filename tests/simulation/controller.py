"""Controller: the simulated controller. It writes one history of metadata, which brokers read in order.

It follows Apache Kafka's rules. A broker registers and is fenced until it has read its own registration. A broker
without heartbeats for a session timeout is fenced: it leads nothing and leaves every ISR, except as the last in-sync
replica. Its next heartbeat unfences it. Leaders are elected from the ISR. While the active controller is replaced, no
request gets a response and no broker is fenced.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import count
from typing import NamedTuple

from tailrace.metadata.image.partition_registration import PartitionRegistration
from tailrace.model.errors import ErrorCode
from tailrace.model.ids import TopicPartition
from tailrace.protocol.messages import AlterPartitionRequest, AlterPartitionResponse
from tailrace.replication.isr.isr_state import IsrProposal
from tests.simulation.network import Host, Network
from tests.simulation.node import registration

CONTROLLER_ID = 0
SESSION_MS = 600
KEYS = (TopicPartition("topic", 0), TopicPartition("topic", 1))
REPLICAS = 3

PartitionAnswer = AlterPartitionResponse.PartitionData


class Metadata(NamedTuple):
    """One entry of the history: a broker's current registration, or a partition's new state."""

    broker_id: int = -1
    broker_epoch: int = -1
    is_fenced: bool = False
    key: TopicPartition | None = None
    state: PartitionRegistration | None = None


class Registered:
    """A broker's registration, as the controller knows it."""

    def __init__(self, epoch: int, registered_at: int, now_ms: int) -> None:
        self.epoch = epoch
        self.registered_at = registered_at
        self.is_fenced = True
        self.received_ms = now_ms


class Controller(Host):
    def __init__(self, network: Network) -> None:
        super().__init__(CONTROLLER_ID)
        self._network = network
        self._random = network.random
        self.history: list[Metadata] = []
        self.brokers: dict[int, Registered] = {}
        self.states: dict[TopicPartition, PartitionRegistration] = {}
        self.leaders: dict[tuple[TopicPartition, int], int] = {}  # (partition, leader epoch) → leader
        self._bumps_on_shrink = self._random.random() < 0.3  # as controllers before 3.6 did
        self._broker_epochs = count(1_000)
        network.after(0, self, self._watch)

    def begin(self, broker_ids: Sequence[int]) -> None:
        for broker_id in broker_ids:
            self.register(broker_id)
            self._set_fenced(broker_id, False)
        for n, key in enumerate(KEYS):
            replicas = [broker_ids[(n + place) % len(broker_ids)] for place in range(REPLICAS)]
            self._write(key, registration(replicas[0], replicas))

    def replace_active(self, ms: int) -> None:
        """Replace the active controller, after a time without one. All broker sessions start again."""
        self.stopped_until_ms = self._network.now_ms + ms
        for one in self.brokers.values():
            one.received_ms = self.stopped_until_ms

    @property
    def is_away(self) -> bool:
        return self.stopped_until_ms > self._network.now_ms

    # Brokers

    def register(self, broker_id: int) -> int | None:
        """Return the epoch of a newly started broker, or None while its previous process counts as alive."""
        known = self.brokers.get(broker_id)
        if known is not None and not known.is_fenced:
            return None
        epoch = next(self._broker_epochs)
        self.history.append(Metadata(broker_id, epoch, is_fenced=True))
        self.brokers[broker_id] = Registered(epoch, len(self.history), self._network.now_ms)
        return epoch

    def heartbeat(self, broker_id: int, epoch: int, seen: int) -> None:
        """Handle a heartbeat; `seen` is how much of the history the broker has read."""
        known = self.brokers[broker_id]
        if known.epoch != epoch:
            return
        known.received_ms = self._network.now_ms
        if known.is_fenced and seen >= known.registered_at:
            self._set_fenced(broker_id, False)

    def fence(self, broker_id: int) -> None:
        if not self.brokers[broker_id].is_fenced:
            self._set_fenced(broker_id, True)

    def _watch(self) -> None:
        for broker_id, known in self.brokers.items():
            if not known.is_fenced and self._network.now_ms - known.received_ms > SESSION_MS:
                self.fence(broker_id)
        self._network.after(100, self, self._watch)

    def _set_fenced(self, broker_id: int, is_fenced: bool) -> None:
        known = self.brokers[broker_id]
        known.is_fenced = is_fenced
        self.history.append(Metadata(broker_id, known.epoch, is_fenced))
        for key, state in list(self.states.items()):
            if is_fenced:
                isr = tuple(one for one in state.isr if one != broker_id) or state.isr
                leader = self._elect(isr) if state.leader == broker_id else state.leader
            else:
                isr = state.isr
                leader = broker_id if state.leader == -1 and broker_id in isr else state.leader
            if (leader, isr) != (state.leader, state.isr):
                self._change(key, leader=leader, isr=isr)

    def is_alive_here(self, broker_id: int) -> bool:
        return broker_id in self.brokers and not self.brokers[broker_id].is_fenced

    # Partitions

    def move_leader(self, key: TopicPartition, preferred: int | None = None) -> None:
        """Elect another leader although the current one is alive, as a preferred election does."""
        state = self.states[key]
        others = [one for one in state.isr if one != state.leader and preferred in (None, one)]
        leader = self._elect(others)
        if leader >= 0:
            self._change(key, leader=leader)

    def reassign(self, key: TopicPartition) -> None:
        """Reassign the partition to other brokers: some join, and the others leave once those are in sync."""
        state = self.states[key]
        if not state.adding_replicas and not state.removing_replicas:
            wanted = self._random.sample(sorted(self.brokers), REPLICAS)
            adding = tuple(one for one in wanted if one not in state.replicas)
            removing = tuple(one for one in state.replicas if one not in wanted)
            if adding:
                replicas = (*state.replicas, *adding)
                self._change(key, replicas=replicas, adding_replicas=adding, removing_replicas=removing)

    def alter_partition(self, key: TopicPartition, proposal: IsrProposal) -> PartitionRegistration | ErrorCode:
        state = self.states[key]
        if proposal.leader_epoch < state.leader_epoch:
            return ErrorCode.FENCED_LEADER_EPOCH
        if proposal.partition_epoch < state.partition_epoch:
            return ErrorCode.INVALID_UPDATE_VERSION
        for one, broker_epoch in proposal.isr:
            if not self.is_alive_here(one) or broker_epoch not in (-1, self.brokers[one].epoch):
                return ErrorCode.INELIGIBLE_REPLICA
        isr = tuple(one for one, _ in proposal.isr)
        leader_before = state.leader
        decided = self._complete(key, isr) or self._change(key, isr=isr)
        return decided if decided.leader == leader_before else ErrorCode.NEW_LEADER_ELECTED

    def _complete(self, key: TopicPartition, isr: tuple[int, ...]) -> PartitionRegistration | None:
        """Return the state after a reassignment if all added replicas are in sync, else None."""
        state = self.states[key]
        wanted = tuple(one for one in state.replicas if one not in state.removing_replicas)
        if not state.adding_replicas or not set(state.adding_replicas) <= set(isr):
            return None
        isr = tuple(one for one in isr if one in wanted)
        leader = state.leader if state.leader in wanted else self._elect(isr)
        if leader < 0:
            return None
        return self._change(key, leader=leader, isr=isr, replicas=wanted, adding_replicas=(), removing_replicas=())

    def respond(
        self, broker_id: int, broker_epoch: int, topics: Sequence[AlterPartitionRequest.TopicData]
    ) -> AlterPartitionResponse:
        """Handle AlterPartition."""
        return AlterPartitionResponse(topics=[self.decide(broker_id, one) for one in topics])

    def decide(self, leader_id: int, topic: AlterPartitionRequest.TopicData) -> AlterPartitionResponse.TopicData:
        """Handle AlterPartition for the partitions of a topic."""

        def answer(asked: AlterPartitionRequest.PartitionData) -> PartitionAnswer:
            proposal = IsrProposal(
                leader_id,
                asked.leader_epoch,
                asked.partition_epoch,
                tuple((one.broker_id, one.broker_epoch) for one in asked.new_isr_with_epochs),
            )
            decided = self.alter_partition(TopicPartition(KEYS[0].topic, asked.partition_index), proposal)
            if isinstance(decided, ErrorCode):
                return PartitionAnswer(partition_index=asked.partition_index, error_code=decided)
            return PartitionAnswer(
                partition_index=asked.partition_index,
                leader_id=decided.leader,
                leader_epoch=decided.leader_epoch,
                isr=list(decided.isr),
                partition_epoch=decided.partition_epoch,
            )

        return AlterPartitionResponse.TopicData(
            topic_id=topic.topic_id, partitions=[answer(one) for one in topic.partitions]
        )

    def _elect(self, isr: Sequence[int]) -> int:
        alive = [one for one in isr if self.is_alive_here(one)]
        return self._random.choice(alive) if alive else -1

    def _change(self, key: TopicPartition, **fields: object) -> PartitionRegistration:
        """Return the new state. The leader epoch rises if another broker leads or a replica was removed."""
        state = self.states[key]
        changed = replace(state, partition_epoch=state.partition_epoch + 1, **fields)
        if "replicas" in fields:
            changed = replace(changed, directories=(bytes(16),) * len(changed.replicas))
        is_smaller = not set(state.replicas) <= set(changed.replicas)
        is_shrunk = not set(state.isr) <= set(changed.isr)
        if changed.leader != state.leader or is_smaller or (is_shrunk and self._bumps_on_shrink):
            changed = replace(changed, leader_epoch=state.leader_epoch + 1)
        return self._write(key, changed)

    def _write(self, key: TopicPartition, state: PartitionRegistration) -> PartitionRegistration:
        assert self.leaders.setdefault((key, state.leader_epoch), state.leader) == state.leader
        self.states[key] = state
        self.history.append(Metadata(key=key, state=state))
        return state
