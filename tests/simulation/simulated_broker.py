"""SimulatedBroker: one process of a broker in the simulated cluster. Its files outlive it.

Its parts are the real ones: the log directory with checkpoints and recovery, roles, fetchers and fetch sessions,
delayed requests, ISR proposals. Syncs outside the broker's thread complete some time later.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tailrace.log.directories.log_directory import LogDirectory
from tailrace.model.configs.topic_settings import parse_topic_config
from tailrace.model.ids import TopicPartition
from tailrace.protocol.messages import AlterPartitionRequest
from tailrace.replication.isr.isr_proposals import IsrProposals
from tailrace.replication.partition import Partition
from tailrace.waiting.outbox import Answered, Failed, Failure
from tests.simulation.controller import Metadata
from tests.simulation.network import Host
from tests.simulation.node import Node, broker, topic_id_of
from tests.simulation.replica_fetcher import SimulatedFetchers

if TYPE_CHECKING:
    from tests.simulation.cluster import Cluster

MIN_IN_SYNC = 2


class InOrder(dict[Any, None]):
    """A replacement for sets, whose order differs between processes: a seed must play the same schedule everywhere."""

    def add(self, one: object) -> None:
        self[one] = None

    def discard(self, one: object) -> None:
        self.pop(one, None)


class SimulatedBroker(Host):
    def __init__(self, cluster: Cluster, broker_id: int, epoch: int) -> None:
        super().__init__(broker_id)
        self.broker_id = broker_id
        self.cluster = cluster
        self.network = cluster.network
        self.weather = cluster.weather
        self.epoch = epoch
        lag_ms = self.weather.lag_ms
        files = cluster.files[broker_id]
        self.node = Node(broker_id, files=files, replica_lag_time_max_ms=lag_ms, broker_epoch=lambda: epoch)
        self.directory = LogDirectory(
            files, f"/data-{broker_id}", new_id=lambda: f"{cluster.random.getrandbits(128):032x}"
        )
        self.directory._waiting = InOrder()
        self.config = parse_topic_config(
            {
                "internal.segment.bytes": str(self.weather.segment_bytes),
                "index.interval.bytes": "200",
                "min.insync.replicas": str(MIN_IN_SYNC),
            }
        )
        report = self.directory.load(lambda _: self.config, self.network.now_ms)
        assert not report.failed, report.failed
        self.directory.run_work_with(self._do_later, _disk_failed)
        self.seen = 0  # number of metadata entries that were read
        self.deaf_until_ms = 0  # reads no metadata until then, but sends heartbeats
        self._reads_metadata = self.weather.reads_metadata  # probability of reading metadata in each step
        self.registered_at = cluster.controller.brokers[broker_id].registered_at
        self.proposals = IsrProposals(
            self,
            self.node.partitions,
            lambda key, _: self.node.check(key),
            lag_ms_max=lag_ms,
            now_ms=self.network.now_ms,
        )
        self.node.settings.on_proposal = self.proposals.propose
        self.fetcher = SimulatedFetchers(self)
        self.network.after(1, self, self._work)

    def now(self) -> Node:
        """Return the node, with its clock at the cluster's time and all due work done."""
        self.node.now_ms = self.network.now_ms
        self.node.purgatory.expire(self.node.now_ms)
        return self.node

    def partition(self, key: TopicPartition) -> Partition | None:
        return self.node.partitions.get(key)

    def _work(self) -> None:
        """Run the broker's periodic work."""
        random = self.network.random
        now_ms = self.now().now_ms
        controller = self.cluster.controller
        if not controller.is_away and not self.network.is_cut(self, controller):
            is_calm = self.cluster.is_calm
            if random.random() < 0.03:  # a slow broker learns of other changes long after those that it made itself
                self._reads_metadata = random.choice([self.weather.reads_metadata, 0.05])
            if is_calm or (random.random() < self._reads_metadata and self.deaf_until_ms <= now_ms):
                self._read_metadata()
            controller.heartbeat(self.broker_id, self.epoch, self.seen)
        self.directory.run_due(now_ms)
        if random.random() < 0.01:
            self.directory.checkpoint_soon(now_ms)
            marks = {one.key: one.log.high_watermark for one in self.node.partitions}
            self.directory.checkpoint_high_watermarks_soon(marks, now_ms)
        self.fetcher.step()
        self.proposals.tick(now_ms)
        self.network.after(random.choice((2, 5, 9)), self, self._work)

    def be_deaf(self, ms: int) -> None:
        """Delay the broker's metadata, which then arrives entry by entry."""
        self.deaf_until_ms = self.network.now_ms + ms
        self._reads_metadata = 0.1

    def _do_later(self, work: Any) -> None:
        """Run work of another thread for the log directory, such as a sync, some time later."""
        network = self.network

        def run() -> None:
            result = work.run()  # no error handling: these disks do not fail
            network.after(network.random.choice((0, 1, 10)), self, lambda: work.apply(result, network.now_ms))

        network.after(network.random.choice(self.weather.flushes_ms), self, run)

    def kill(self) -> None:
        self.is_alive = False
        self.directory.abandon()

    def leave(self) -> None:
        """Stop cleanly: all files are synced, and the clean-shutdown marker is written."""
        self.is_alive = False
        self.directory.close(self.network.now_ms, self.epoch)

    # Metadata

    def _read_metadata(self) -> None:
        """Read the next entry of the history. At first, read everything up to the own registration as one image."""
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
        if self.broker_id in entry.state.replicas:
            partition = self.partition(entry.key) or self._open(entry.key)
            node.apply(partition, entry.state)
            self.fetcher.follow(partition)
        else:
            node.publish(entry.key, entry.state)
            self._remove(entry.key)

    def _open(self, key: TopicPartition) -> Partition:
        log = self.directory.logs.get(key)
        if log is None:
            log = self.directory.create(key, self.config, self.node.now_ms)
        else:
            log.advance_high_watermark(self.directory.high_watermarks.get(key, 0))
        partition = Partition(log, self.node.settings, topic_id_of(key.topic))
        self.node.partitions.add(partition)
        return partition

    def _remove(self, key: TopicPartition) -> None:
        """Remove a partition that is no longer a replica here, with files that an earlier process left."""
        self.node.partitions.remove(key)
        self.node.check(key)
        if key in self.directory.logs:
            self.directory.delete(key, self.node.now_ms)

    # ISR changes

    def alter_partition(
        self, topics: Sequence[AlterPartitionRequest.TopicData], answered: Answered, failed: Failed, now_ms: int
    ) -> None:
        """Send the ISR proposals of leaders here to the controller."""
        controller = self.cluster.controller
        self.network.request(
            self,
            controller,
            lambda answer: answer(controller.respond(self.broker_id, self.epoch, topics)),
            lambda response: answered(response, self.now().now_ms),
            lambda: failed(Failure.LOST, self.now().now_ms),
            self.weather.alter_timeout_ms,
        )


def _disk_failed(error: OSError) -> None:
    raise error
