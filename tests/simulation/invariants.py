"""Invariants: checks of the cluster after every event, from time to time, and at the end."""

from __future__ import annotations

from bisect import bisect_right

from tailrace.model.ids import TopicPartition
from tailrace.replication.partition import Partition
from tests.simulation.cluster import Cluster
from tests.simulation.controller import KEYS
from tests.simulation.network import Host
from tests.simulation.node import bytes_of, want
from tests.simulation.reading import Record, aborted_in, committed_values, history_of, values_of
from tests.simulation.simulated_broker import MIN_IN_SYNC, SimulatedBroker


class Invariants:
    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._controller = cluster.controller
        self.committed: dict[TopicPartition, list[Record]] = {key: [] for key in KEYS}
        self._epochs: dict[object, tuple[int, int]] = {}
        self._leaders: dict[tuple[TopicPartition, int], int] = {}
        self._seen: dict[object, object] = {}  # one process's replica → its state at the last check
        self._decided = 0  # length of the controller's history at the last check

    # After every event

    def check(self, host: Host) -> None:
        """Check the host of an event, or all hosts if the controller has decided something."""
        decided = len(self._controller.history)
        if decided != self._decided:
            self._decided = decided
            for one in self._cluster.alive():
                self._check_broker(one)
        elif isinstance(host, SimulatedBroker) and host.is_alive:
            self._check_broker(host)
        acknowledged = self._cluster.acknowledged
        while acknowledged:
            key, offset, in_sync = acknowledged.pop()
            assert offset < len(self.committed[key]), f"{key}: acknowledged {offset}, which is not committed"
            assert in_sync >= MIN_IN_SYNC, f"{key}: acknowledged with {in_sync} in sync"

    def _check_broker(self, one: SimulatedBroker) -> None:
        for partition in one.node.partitions:
            log, leader = partition.log, partition.leader
            partition_epoch = partition.partition_epoch if leader is None else leader.isr_changes.partition_epoch
            now = (
                partition,
                log.marks.log_end.offset,
                log.marks.high_watermark.offset,
                partition.leader_epoch,
                partition_epoch,
                leader,
                len(self.committed[partition.key]),
                self._decided,
            )
            life = (one, partition.key)
            if self._seen.get(life) != now:
                self._seen[life] = now
                self._check_replica(one, partition, partition_epoch)

    def _check_replica(self, one: SimulatedBroker, partition: Partition, partition_epoch: int) -> None:
        key, log = partition.key, partition.log
        committed = self.committed[key]
        end, high_watermark = log.log_end_offset, log.high_watermark
        assert high_watermark <= end, f"{one.broker_id}: {key} ends at {end}, before its high watermark"
        life = (one.broker_id, one.epoch, key)
        now, before = (partition.leader_epoch, partition_epoch), self._epochs.get(life, (-1, -1))
        assert now[0] >= before[0], f"{one.broker_id}: the leader epoch of {key} went back from {before[0]} to {now[0]}"
        assert now[1] >= before[1], f"{one.broker_id}: the partition epoch of {key} went back to {now[1]}"
        self._epochs[life] = now
        if one.broker_id in self._controller.states[key].isr:
            assert end >= len(committed), f"{one.broker_id} is in sync with {key}, without {end}..{len(committed)}"
        leader = partition.leader
        if leader is None:
            return
        known = self._leaders.setdefault((key, partition.leader_epoch), one.broker_id)
        assert known == one.broker_id, f"{known} and {one.broker_id} lead {key} in epoch {partition.leader_epoch}"
        # This includes a deposed leader that has not learned it yet: the records that it commits are committed.
        if high_watermark > len(committed):
            assert len(leader.isr.maximal) >= MIN_IN_SYNC, f"{key}: committed by {leader.isr}"
            for member in leader.isr.maximal - {one.broker_id}:
                other = self._cluster.brokers[member]
                replica = other.partition(key)
                # Fetches of an earlier process promise nothing: the controller does not accept its old broker epoch
                # into the ISR.
                if other.is_alive and replica is not None and leader.followers[member].broker_epoch == other.epoch:
                    theirs = replica.log.log_end_offset
                    assert high_watermark <= theirs, f"{key}: committed {high_watermark}, but {member} ends at {theirs}"
            history = history_of(partition, len(committed))
            committed.extend(history[offset] for offset in range(len(committed), high_watermark))

    # From time to time

    def check_logs(self) -> None:
        """Check that every replica has the records that it knows as committed, an in-sync replica all committed
        records, and that epochs match records.
        """
        for key in KEYS:
            committed = self.committed[key]
            in_sync = self._controller.states[key].isr
            for one in self._cluster.alive():
                partition = one.partition(key)
                if partition is not None:
                    end = len(committed) if one.broker_id in in_sync else partition.log.high_watermark
                    self._check_history(one.broker_id, partition, end)

    def _check_history(self, member: int, partition: Partition, end: int) -> None:
        committed = self.committed[partition.key]
        entries = partition.log.epochs.entries
        assert entries == sorted(entries)
        starts = [entry.start_offset for entry in entries]
        log_start = partition.log.log_start_offset
        history = history_of(partition, log_start)
        for offset in range(log_start, min(end, len(committed))):
            assert history.get(offset) == committed[offset], f"{member} lost or changed {partition.key} {offset}"
        for offset, (epoch, _) in history.items():
            # Deleted records may be back after a crash; their epochs are not.
            if starts and offset >= max(log_start, starts[0]):
                noted = entries[bisect_right(starts, offset) - 1].epoch
                assert noted == epoch, f"{member} takes {partition.key} {offset} of epoch {epoch} for one of {noted}"

    # At the end

    def have_converged(self) -> bool:
        """Return True if all brokers are alive and all replicas have all records."""
        for key in KEYS:
            state, end = self._controller.states[key], len(self.committed[key])
            if sorted(state.isr) != sorted(state.replicas):
                return False
            one = self._cluster.brokers.get(state.leader)
            leading = one.partition(key) if one is not None else None
            if leading is None:
                return False
            for broker_id, one in self._cluster.brokers.items():
                partition = one.partition(key)
                if not one.is_alive or (partition is not None) != (broker_id in state.replicas):
                    return False
                if partition is not None:
                    log = partition.log
                    if (log.high_watermark, log.log_end_offset, partition.leader_id) != (end, end, state.leader):
                        return False
                    # a follower learns the log start with its next fetch
                    if log.log_start_offset < leading.log.log_start_offset:
                        return False
        return True

    def check_convergence(self) -> None:
        for key in KEYS:
            state = self._controller.states[key]
            assert sorted(state.isr) == sorted(state.replicas), f"{key}: in sync are {state.isr} of {state.replicas}"
            leading = self._cluster.brokers[state.leader].partition(key)
            assert leading is not None, f"{state.leader} does not lead {key}"
            for broker_id, one in self._cluster.brokers.items():
                partition = one.partition(key)
                assert (partition is not None) == (broker_id in state.replicas)
                if partition is not None:
                    log = partition.log
                    end = len(self.committed[key])
                    assert (log.high_watermark, log.log_end_offset) == (end, end), f"{broker_id}: {key} is at {log}"
                    assert log.log_start_offset >= leading.log.log_start_offset, f"{broker_id} keeps deleted records"
                    assert log.last_stable_offset == leading.log.last_stable_offset, f"{broker_id}: last stable offset"
                    self._check_history(broker_id, partition, end)

    def read_committed(self, one: SimulatedBroker, partition: Partition) -> set[bytes]:
        """Return the values that a read_committed consumer gets, up to the last stable offset."""
        end = partition.log.last_stable_offset
        read: set[bytes] = set()
        offset = partition.log.log_start_offset
        while offset < end:
            answer = one.now().fetch([want(partition, offset)], max_wait_ms=0, isolation_level=1).only
            assert answer.last_stable_offset == end
            data = bytes_of(answer)
            read |= committed_values(data, aborted_in(answer))
            offset = max(at for at, _, _ in values_of(data)) + 1
        return read
