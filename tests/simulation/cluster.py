"""Cluster: brokers that replicate partitions over a simulated network, under a simulated controller, by one seed.

Everything that takes time is an event: a message on its way, metadata that a broker has yet to see, a deadline. The
broker's parts are the real ones: fetchers, Fetch requests and sessions, delayed fetches and produces, roles and epochs,
proposals of in-sync replicas. What is simulated is the network (messages are late or lost), the process (killed, and
started again on the same files), and the controller, who elects leaders from the ISR and writes one history of metadata
that each broker reads in order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from heapq import heappop, heappush
from itertools import count
from random import Random
from typing import NamedTuple

from tailrace.log.recovery import open_log
from tailrace.metadata.partition_registration import PartitionRegistration
from tailrace.model.errors import ErrorCode
from tailrace.model.ids import TopicPartition
from tailrace.model.topic_config import TopicConfig
from tailrace.outgoing import Answered, Failed, Failure
from tailrace.protocol.messages import AlterPartitionRequest, AlterPartitionResponse
from tailrace.replication.isr import IsrProposal
from tailrace.replication.isr_proposals import IsrProposals
from tailrace.replication.partition import Partition
from tests.simulation.node import Node, broker, registration, topic_id_of
from tests.simulation.replica_fetcher import SimulatedFetchers
from tests.support.memory_files import MemoryFiles

LAG_MS = 800
KEYS = (TopicPartition("topic", 0), TopicPartition("topic", 1))
CONFIG = {"internal.segment.bytes": "2000", "index.interval.bytes": "200", "min.insync.replicas": "2"}


class Metadata(NamedTuple):
    """One entry of the controller's history: a broker that came or went, or a partition's new state."""

    broker_id: int = -1
    broker_epoch: int = -1
    is_fenced: bool = False
    key: TopicPartition | None = None
    state: PartitionRegistration | None = None


class SimulatedBroker:
    """A broker's process: ends when it is killed; its files stay."""

    def __init__(self, cluster: Cluster, broker_id: int, epoch: int, files: MemoryFiles) -> None:
        self.cluster = cluster
        self.epoch = epoch
        self.node = Node(broker_id, files=files, replica_lag_time_max_ms=LAG_MS, broker_epoch=lambda: epoch)
        self.node.now_ms = cluster.now_ms
        self.seen = 0  # how much of the metadata
        self.registered_at = len(cluster.controller.history)
        self.is_alive = True
        self.proposals = IsrProposals(
            self,
            self.node.partitions,
            lambda key, _: self.node.check(key),
            lag_ms_max=LAG_MS,
            now_ms=cluster.now_ms,
        )
        self.node.settings.on_proposal = self.proposals.propose
        self.fetcher = SimulatedFetchers(self)

    @property
    def broker_id(self) -> int:
        return self.node.broker_id

    def now(self) -> Node:
        """The node, with its clock at the cluster's time and what was due done."""
        self.node.now_ms = self.cluster.now_ms
        self.node.purgatory.expire(self.node.now_ms)
        return self.node

    def partition(self, key: TopicPartition) -> Partition | None:
        return self.node.partitions.get(key)

    # Metadata

    def read_metadata(self) -> None:
        """Take the next entry of the history; at first everything up to the own registration, as one picture."""
        history = self.cluster.controller.history
        if self.seen == 0:
            latest = {entry.key or entry.broker_id: entry for entry in history[: self.registered_at]}
            for entry in latest.values():
                self.take(entry)
            self.seen = self.registered_at
        elif self.seen < len(history):
            self.take(history[self.seen])
            self.seen += 1

    def take(self, entry: Metadata) -> None:
        node = self.now()
        if entry.key is None:
            node.know(broker(entry.broker_id, epoch=entry.broker_epoch, fenced=entry.is_fenced))
            return
        assert entry.state is not None
        partition = self.partition(entry.key)
        if partition is None:
            partition = self._open(entry.key)
        node.apply(partition, entry.state)

    def _open(self, key: TopicPartition) -> Partition:
        node = self.node
        folder = f"/data-{self.broker_id}/{key}"
        node.files.make_directory(folder)
        log = open_log(node.files, folder, TopicConfig.parse(CONFIG), now_ms=node.now_ms, clean=False)
        partition = Partition(log, node.settings, topic_id_of(key.topic))
        node.partitions.add(partition)
        return partition

    # ISR changes

    def alter_partition(
        self, topics: Sequence[AlterPartitionRequest.TopicData], answered: Answered, failed: Failed, now_ms: int
    ) -> None:
        """What leaders here would like the controller to know."""
        cluster = self.cluster

        def arrive() -> None:
            response = AlterPartitionResponse(topics=[cluster.controller.decide(self, one) for one in topics])
            cluster.send(self, lambda: answered(response, self.now().now_ms), lost)

        def lost() -> None:
            if self.is_alive:
                failed(Failure.LOST, self.now().now_ms)

        cluster.send(self, arrive, lost)


class Controller:
    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.history: list[Metadata] = []
        self.epochs: dict[int, int] = {}  # of the brokers that are alive
        self.states: dict[TopicPartition, PartitionRegistration] = {}
        self._broker_epochs = count(1_000)

    def begin(self, broker_ids: list[int]) -> None:
        for broker_id in broker_ids:
            self.register(broker_id)
        for n, key in enumerate(KEYS):
            self._write(key, registration(broker_ids[n % len(broker_ids)], broker_ids))

    def register(self, broker_id: int) -> int:
        epoch = self.epochs[broker_id] = next(self._broker_epochs)
        self.history.append(Metadata(broker_id, epoch))
        for key, state in self.states.items():
            if state.leader == -1 and broker_id in state.isr:
                self._change(key, state, leader=broker_id, isr=state.isr)
        return epoch

    def fence(self, broker_id: int) -> None:
        """A broker is gone: it leads nothing and is in no ISR, except as the last one that has everything."""
        epoch = self.epochs.pop(broker_id)
        self.history.append(Metadata(broker_id, epoch, is_fenced=True))
        for key, state in self.states.items():
            isr = tuple(one for one in state.isr if one != broker_id) or state.isr
            leader = state.leader
            if leader == broker_id:
                alive = [one for one in isr if one in self.epochs]
                leader = self.cluster.random.choice(alive) if alive else -1
            if (leader, isr) != (state.leader, state.isr):
                self._change(key, state, leader=leader, isr=isr)

    def move_leader(self, key: TopicPartition) -> None:
        """An election without need, as a preferred one is."""
        state = self.states[key]
        alive = [one for one in state.isr if one in self.epochs and one != state.leader]
        if alive:
            self._change(key, state, leader=self.cluster.random.choice(alive), isr=state.isr)

    def alter_partition(self, key: TopicPartition, proposal: IsrProposal) -> PartitionRegistration | ErrorCode:
        state = self.states[key]
        if proposal.leader_epoch < state.leader_epoch:
            return ErrorCode.FENCED_LEADER_EPOCH
        if proposal.partition_epoch < state.partition_epoch:
            return ErrorCode.INVALID_UPDATE_VERSION
        if any(broker_epoch not in (-1, self.epochs.get(one, -2)) for one, broker_epoch in proposal.isr) or any(
            one not in self.epochs for one, _ in proposal.isr
        ):
            return ErrorCode.INELIGIBLE_REPLICA
        return self._change(key, state, leader=state.leader, isr=tuple(one for one, _ in proposal.isr))

    def decide(
        self, leader: SimulatedBroker, topic: AlterPartitionRequest.TopicData
    ) -> AlterPartitionResponse.TopicData:
        """AlterPartition, for the partitions of a topic."""

        def answer(asked: AlterPartitionRequest.PartitionData) -> AlterPartitionResponse.PartitionData:
            proposal = IsrProposal(
                leader.broker_id,
                asked.leader_epoch,
                asked.partition_epoch,
                tuple((one.broker_id, one.broker_epoch) for one in asked.new_isr_with_epochs),
            )
            decided = self.alter_partition(TopicPartition(KEYS[0].topic, asked.partition_index), proposal)
            if isinstance(decided, ErrorCode):
                return AlterPartitionResponse.PartitionData(partition_index=asked.partition_index, error_code=decided)
            return AlterPartitionResponse.PartitionData(
                partition_index=asked.partition_index,
                leader_id=decided.leader,
                leader_epoch=decided.leader_epoch,
                isr=list(decided.isr),
                partition_epoch=decided.partition_epoch,
            )

        return AlterPartitionResponse.TopicData(
            topic_id=topic.topic_id, partitions=[answer(one) for one in topic.partitions]
        )

    def _change(
        self, key: TopicPartition, state: PartitionRegistration, *, leader: int, isr: tuple[int, ...]
    ) -> PartitionRegistration:
        return self._write(
            key,
            registration(
                leader,
                state.replicas,
                isr,
                leader_epoch=state.leader_epoch + (leader != state.leader),
                partition_epoch=state.partition_epoch + 1,
            ),
        )

    def _write(self, key: TopicPartition, state: PartitionRegistration) -> PartitionRegistration:
        self.states[key] = state
        self.history.append(Metadata(key=key, state=state))
        return state


class Cluster:
    def __init__(self, seed: int, brokers: int = 3) -> None:
        self.random = Random(seed)
        self.now_ms = 1_700_000_000_000
        self.is_calm = False  # nothing is lost and nobody dies any more
        self._events: list[tuple[int, int, Callable[[], None]]] = []
        self._numbers = count()
        ids = list(range(1, brokers + 1))
        self.files = {broker_id: MemoryFiles() for broker_id in ids}
        self.controller = Controller(self)
        self.controller.begin(ids)
        self.brokers = {one: SimulatedBroker(self, one, self.controller.epochs[one], self.files[one]) for one in ids}
        for one in self.brokers.values():
            self.keep_going(one)

    # Time

    def after(self, ms: int, action: Callable[[], None]) -> None:
        heappush(self._events, (self.now_ms + ms, next(self._numbers), action))

    def run(self, ms: int, each_step: Callable[[], None]) -> None:
        end = self.now_ms + ms
        while self._events and self._events[0][0] <= end:
            self.now_ms, _, action = heappop(self._events)
            action()
            each_step()
        self.now_ms = end

    def send(self, sender: SimulatedBroker, arrive: Callable[[], None], lost: Callable[[], None]) -> None:
        """A message to or from a broker: it arrives some time later, unless it is lost or the broker dies."""
        delay = self.random.choice([1, 1, 2, 5, 30])
        if not self.is_calm and self.random.random() < 0.03:
            self.after(delay + 50, lost)
        else:
            self.after(delay, lambda: arrive() if sender.is_alive else None)

    # Brokers

    def keep_going(self, one: SimulatedBroker) -> None:
        """What a live broker does all the time."""

        def work() -> None:
            if not one.is_alive:
                return
            one.now()
            if self.is_calm or self.random.random() < 0.7:
                one.read_metadata()
            one.fetcher.step()
            one.proposals.tick(self.now_ms)
            self.after(self.random.choice([2, 5, 9]), work)

        self.after(1, work)

    def kill(self, broker_id: int) -> None:
        one = self.brokers[broker_id]
        if one.is_alive:
            one.is_alive = False
            for partition in one.node.partitions:
                partition.log.abandon()
            self.controller.fence(broker_id)

    def start(self, broker_id: int) -> None:
        if not self.brokers[broker_id].is_alive:
            epoch = self.controller.register(broker_id)
            self.brokers[broker_id] = one = SimulatedBroker(self, broker_id, epoch, self.files[broker_id])
            self.keep_going(one)

    def alive(self) -> list[SimulatedBroker]:
        return [one for one in self.brokers.values() if one.is_alive]
