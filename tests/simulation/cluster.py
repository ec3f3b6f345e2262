"""Cluster: brokers that replicate partitions over a simulated network, under a simulated controller, by one seed.

The broker's parts are the real ones: fetchers, Fetch requests and sessions, delayed fetches and produces, roles and
epochs, proposals of in-sync replicas, logs and their recovery. What is simulated is time, the network, the disk below
the files, the process (killed, stopped, started again on the same files), and the controller.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from tailrace.log.recovery import open_log
from tailrace.model.ids import TopicPartition
from tailrace.model.topic_config import TopicConfig
from tailrace.outgoing import Answered, Failed, Failure
from tailrace.protocol.messages import AlterPartitionRequest, AlterPartitionResponse
from tailrace.replication.isr_proposals import IsrProposals
from tailrace.replication.partition import Partition
from tests.simulation.controller import Controller, Metadata
from tests.simulation.network import Host, Network
from tests.simulation.node import Node, broker, topic_id_of
from tests.simulation.power import PoweredFiles
from tests.simulation.replica_fetcher import SimulatedFetchers

BROKERS = 4
LAG_MS = 800
ALTER_TIMEOUT_MS = 300
CONFIG = {"internal.segment.bytes": "2000", "index.interval.bytes": "200", "min.insync.replicas": "2"}


class SimulatedBroker(Host):
    """A broker's process: ends when it is killed; its files stay."""

    def __init__(self, cluster: Cluster, broker_id: int, epoch: int) -> None:
        super().__init__(broker_id)
        self.cluster = cluster
        self.network = cluster.network
        self.epoch = epoch
        self.node = Node(
            broker_id, files=cluster.files[broker_id], replica_lag_time_max_ms=LAG_MS, broker_epoch=lambda: epoch
        )
        self.seen = 0  # how much of the metadata
        self._reads_metadata = 0.7  # how likely, each time
        self.registered_at = cluster.controller.brokers[broker_id].registered_at
        self.proposals = IsrProposals(
            self,
            self.node.partitions,
            lambda key, _: self.node.check(key),
            lag_ms_max=LAG_MS,
            now_ms=self.network.now_ms,
        )
        self.node.settings.on_proposal = self.proposals.propose
        self.fetcher = SimulatedFetchers(self)
        self.network.after(1, self, self._work)

    @property
    def broker_id(self) -> int:
        return self.host_id

    def now(self) -> Node:
        """The node, with its clock at the cluster's time and what was due done."""
        self.node.now_ms = self.network.now_ms
        self.node.purgatory.expire(self.node.now_ms)
        return self.node

    def partition(self, key: TopicPartition) -> Partition | None:
        return self.node.partitions.get(key)

    def _work(self) -> None:
        """What a broker does all the time."""
        random = self.network.random
        self.now()
        controller = self.cluster.controller
        if not controller.is_away and not self.network.is_cut(self, controller):
            if random.random() < 0.03:  # a slow one hears of changes long after it was told of its own
                self._reads_metadata = random.choice([0.7, 0.05])
            if self.cluster.is_calm or random.random() < self._reads_metadata:
                self._read_metadata()
            controller.hear(self.broker_id, self.epoch, self.seen)
        for partition in self.node.partitions:
            partition.log.run_due(self.node.now_ms)
        self.fetcher.step()
        self.proposals.tick(self.node.now_ms)
        self.network.after(random.choice([2, 5, 9]), self, self._work)

    def kill(self) -> None:
        self.is_alive = False
        for partition in self.node.partitions:
            partition.log.abandon()

    # Metadata

    def _read_metadata(self) -> None:
        """Take the next entry of the history; at first everything up to the own registration, as one picture."""
        history = self.cluster.controller.history
        if self.seen == 0:
            latest = {entry.key or entry.broker_id: entry for entry in history[: self.registered_at]}
            for entry in latest.values():
                self._take(entry)
            self.seen = self.registered_at
        elif self.seen < len(history):
            self._take(history[self.seen])
            self.seen += 1

    def _take(self, entry: Metadata) -> None:
        node = self.now()
        if entry.key is None:
            node.know(broker(entry.broker_id, epoch=entry.broker_epoch, fenced=entry.is_fenced))
            return
        assert entry.state is not None
        partition = self.partition(entry.key)
        if self.broker_id in entry.state.replicas:
            node.apply(partition or self._open(entry.key), entry.state)
        else:
            node.publish(entry.key, entry.state)
            self._remove(entry.key)

    def _folder(self, key: TopicPartition) -> str:
        return f"/data-{self.broker_id}/{key}"

    def _open(self, key: TopicPartition) -> Partition:
        node = self.node
        folder = self._folder(key)
        node.files.make_directory(folder)
        log = open_log(node.files, folder, TopicConfig.parse(CONFIG), now_ms=node.now_ms, clean=False)
        partition = Partition(log, node.settings, topic_id_of(key.topic))
        node.partitions.add(partition)
        return partition

    def _remove(self, key: TopicPartition) -> None:
        """Not a replica any more: what is here goes, also what an earlier life of the broker left."""
        partition = self.node.partitions.remove(key)
        self.node.check(key)
        if partition is not None:
            partition.log.delete()
        elif self.node.files.exists(self._folder(key)):
            self.node.files.remove_directory(self._folder(key))

    # ISR changes

    def alter_partition(
        self, topics: Sequence[AlterPartitionRequest.TopicData], answered: Answered, failed: Failed, now_ms: int
    ) -> None:
        """What leaders here would like the controller to know."""
        controller = self.cluster.controller
        self.network.request(
            self,
            controller,
            lambda answer: answer(
                AlterPartitionResponse(topics=[controller.decide(self.broker_id, one) for one in topics])
            ),
            lambda response: answered(response, self.now().now_ms),
            lambda: failed(Failure.LOST, self.now().now_ms),
            ALTER_TIMEOUT_MS,
        )


class Cluster:
    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.network = Network(self.random)
        self.is_calm = False  # nothing is lost and nobody dies any more
        ids = list(range(1, BROKERS + 1))
        self.files = {broker_id: PoweredFiles() for broker_id in ids}
        self.controller = Controller(self.network)
        self.controller.begin(ids)
        self.brokers = {one: SimulatedBroker(self, one, self.controller.brokers[one].epoch) for one in ids}

    def alive(self) -> list[SimulatedBroker]:
        return [one for one in self.brokers.values() if one.is_alive]

    def kill(self, broker_id: int) -> None:
        """kill -9: what was written stays, and the controller waits for the session's end."""
        if self.brokers[broker_id].is_alive:
            self.brokers[broker_id].kill()

    def lose_power(self, broker_id: int) -> bool:
        """A machine fails, what it had not synced is gone; never the last one in sync, which nobody could replace."""
        controller = self.controller
        for state in controller.states.values():
            others = [one for one in state.isr if one != broker_id and controller.is_alive_here(one)]
            if broker_id in state.isr and not others:
                return False
        if not self.brokers[broker_id].is_alive or controller.is_away:
            return False
        self.kill(broker_id)
        self.files[broker_id].lose_power(self.random)
        controller.fence(broker_id)
        return True

    def joining(self) -> list[int]:
        """Who is about to be in sync, if the controller agrees."""
        pending = [
            partition.leader.isr.pending
            for one in self.alive()
            for partition in one.node.partitions
            if partition.leader is not None
        ]
        return sorted({broker_id for proposal in pending if proposal for broker_id in proposal.joining})

    def stop(self, broker_id: int, ms: int) -> None:
        """SIGSTOP, and SIGCONT later."""
        self.brokers[broker_id].stopped_until_ms = self.network.now_ms + ms

    def cut(self, broker_id: int) -> None:
        """From one of the others, or the controller; in one direction or both."""
        other = self.random.choice([one for one in (0, *self.brokers) if one != broker_id])
        directions = [(broker_id, other), (other, broker_id)]
        for sender, receiver in self.random.choice([directions, directions[:1], directions[1:]]):
            self.network.cut(sender, receiver)

    def start(self, broker_id: int) -> None:
        """Once its predecessor's session is over."""
        if self.brokers[broker_id].is_alive:
            return
        epoch = None if self.controller.is_away else self.controller.register(broker_id)
        if epoch is not None:
            self.brokers[broker_id] = SimulatedBroker(self, broker_id, epoch)

    def calm_down(self) -> None:
        self.is_calm = True
        self.network.mend()
        self.network.loss = 0.0
        for one in self.brokers.values():
            one.stopped_until_ms = 0
