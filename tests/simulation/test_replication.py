"""Leaders and followers under random schedules of appends, fetches, lost messages, kills and elections.

A failing run names its seed: SEED=… repeats it alone.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tailrace.model.errors import ErrorCode
from tailrace.model.ids import TopicPartition
from tailrace.records.batch import RecordBatch
from tailrace.records.conversion import split_any
from tailrace.records.record import iter_records
from tailrace.replication.delayed_produce import DelayedProduce
from tailrace.replication.partition import Partition
from tailrace.replication.produce import append_produced
from tests.simulation.cluster import KEYS, Cluster, SimulatedBroker
from tests.simulation.node import Asked, bytes_of, want
from tests.support.batches import batch, stored_batches

SEEDS = [int(os.environ["SEED"])] if "SEED" in os.environ else list(range(12))


def values_of(data: bytes) -> Iterator[tuple[int, int, bytes]]:
    """(offset, leader epoch, value) of every record."""
    for one in split_any(data):
        assert isinstance(one, RecordBatch)
        for record in iter_records(one):
            yield record.offset, one.leader_epoch, bytes(record.value or b"")


def history_of(partition: Partition) -> dict[int, tuple[int, bytes]]:
    return {
        offset: (epoch, value)
        for stored in stored_batches(partition.log)
        for offset, epoch, value in values_of(stored.data)
    }


class Watched:
    """A cluster at work, with everything about it that must hold."""

    def __init__(self, seed: int) -> None:
        self.cluster = Cluster(seed)
        self.random = self.cluster.random
        self.is_stormy = seed % 2 == 0  # elections in quick succession, with few records between
        self.committed: dict[TopicPartition, dict[int, tuple[int, bytes]]] = {key: {} for key in KEYS}
        self.acknowledged: dict[TopicPartition, dict[int, bytes]] = {key: {} for key in KEYS}
        self.seen: dict[object, int] = {}  # (replica's life) → the largest high watermark that a consumer saw there
        self.epochs: dict[object, tuple[int, int]] = {}
        self.produced = 0
        self.answered: dict[int, int] = {}  # error code → how many produces ended so
        self.consumed = 0

    # Clients

    def leader_of(self, key: TopicPartition) -> SimulatedBroker | None:
        """A broker that takes itself for the leader; it may be mistaken."""
        leading = [one for one in self.cluster.alive() if (p := one.partition(key)) is not None and p.is_leader]
        return self.random.choice(leading) if leading else None

    def produce(self) -> None:
        key = self.random.choice(KEYS)
        one = self.leader_of(key)
        if one is None:
            return
        node = one.now()
        self.produced += 1
        value = f"{self.produced}".encode()
        acks = self.random.choice([-1, -1, 1])
        part = append_produced(
            node.partitions, key, batch(value, timestamp=node.now_ms), required_acks=acks, now_ms=node.now_ms
        )
        node.check(key)
        if acks == -1 and part.is_appended:

            def answered(operation: DelayedProduce, now_ms: int) -> None:
                error = part.response.error_code
                self.answered[error] = self.answered.get(error, 0) + 1
                if error == ErrorCode.NONE:
                    self.acknowledged[key][part.response.base_offset] = value

            operation = DelayedProduce([part], node.partitions, node.now_ms + 1_000, answered)
            node.purgatory.try_complete_or_watch(operation, operation.keys(), node.now_ms)

    def consume(self) -> None:
        """Read from any replica, as clients in racks may."""
        key = self.random.choice(KEYS)
        alive = [one for one in self.cluster.alive() if one.partition(key) is not None]
        if not alive:
            return
        one = self.random.choice(alive)
        partition = one.partition(key)
        assert partition is not None
        offset = self.random.randint(0, max(partition.log.high_watermark, 0))
        asked: Asked = one.now().fetch([want(partition, offset)], max_wait_ms=0)
        answer = asked.only
        if answer.error_code:
            return
        life = (one.broker_id, one.epoch, key, partition.leader_epoch)
        assert answer.high_watermark >= self.seen.get(life, 0), "the high watermark moved back"
        self.seen[life] = answer.high_watermark
        committed = self.committed[key]
        for at, epoch, value in values_of(bytes_of(answer)):
            self.consumed += 1
            assert at < answer.high_watermark, "a consumer saw what is not committed"
            assert committed.get(at, (epoch, value)) == (epoch, value), "a committed record changed"

    def disturb(self) -> None:
        what = self.random.random()
        broker_id = self.random.choice(list(self.cluster.brokers))
        if what < 0.3 and len(self.cluster.alive()) > 1:
            self.cluster.kill(broker_id)
        elif what < 0.7:
            self.cluster.start(broker_id)
        else:
            self.cluster.controller.move_leader(self.random.choice(KEYS))

    # What must hold

    def check(self) -> None:
        for key in KEYS:
            committed = self.committed[key]
            replicas = {one.broker_id: p for one in self.cluster.alive() if (p := one.partition(key)) is not None}
            for one in self.cluster.alive():
                partition = one.partition(key)
                if partition is None:
                    continue
                self.check_epochs(one, partition)
                leader = partition.leader
                if leader is None:
                    continue
                # Also one that has been deposed and does not know it yet: what it commits is committed.
                high_watermark = partition.log.high_watermark
                for member in leader.isr.maximal & set(replicas):
                    end = replicas[member].log.log_end_offset
                    assert high_watermark <= end, f"{key}: high watermark {high_watermark}, but {member} ends at {end}"
                if high_watermark > len(committed):
                    history = history_of(partition)
                    for offset in range(len(committed), high_watermark):
                        committed[offset] = history[offset]

    def check_epochs(self, one: SimulatedBroker, partition: Partition) -> None:
        life = (one.broker_id, one.epoch, partition.key)
        now = (partition.leader_epoch, partition.partition_epoch)
        before = self.epochs.get(life, (-1, -1))
        assert now >= before, "an epoch went back"
        assert now[1] >= before[1]
        self.epochs[life] = now
        entries = partition.log.epochs.entries
        assert entries == sorted(entries)
        assert partition.log.high_watermark <= partition.log.log_end_offset

    def check_logs(self) -> None:
        """Every replica in sync has everything committed, and all that was acknowledged is committed."""
        for key in KEYS:
            committed = self.committed[key]
            state = self.cluster.controller.states[key]
            for member in state.isr:
                one = self.cluster.brokers[member]
                partition = one.partition(key)
                if not one.is_alive or partition is None:
                    continue
                history = history_of(partition)
                for offset, record in committed.items():
                    assert history.get(offset) == record, f"{member} lost or changed {key} {offset}"
            for offset, value in self.acknowledged[key].items():
                assert committed[offset][1] == value, f"acknowledged {key} {offset} is not what was committed"

    def run(self, ms: int, *, disturbed: bool) -> None:
        for _ in range(ms // 50):
            for _ in range(self.random.randint(0, 4)):
                self.produce()
            self.consume()
            if disturbed and self.random.random() < 0.12:
                self.disturb()
            if disturbed and self.is_stormy and self.random.random() < 0.5:
                self.cluster.controller.move_leader(self.random.choice(KEYS))
            self.cluster.run(50, self.check)

    def calm_down(self) -> None:
        """No more trouble: everybody is started, nothing is lost, nobody writes."""
        self.cluster.is_calm = True
        for broker_id in self.cluster.brokers:
            self.cluster.start(broker_id)
        self.cluster.run(12_000, self.check)

    def check_convergence(self) -> None:
        for key in KEYS:
            state = self.cluster.controller.states[key]
            assert sorted(state.isr) == sorted(self.cluster.brokers), "not everyone has come back into sync"
            histories = []
            for one in self.cluster.brokers.values():
                partition = one.partition(key)
                assert partition is not None
                assert partition.log.high_watermark == partition.log.log_end_offset, one.broker_id
                histories.append(history_of(partition))
            assert histories[0] == histories[1] == histories[2]
            assert histories[0] == self.committed[key]


def simulate(seed: int, ms: int) -> Watched:
    watched = Watched(seed)
    for _ in range(ms // 1_000):
        watched.run(1_000, disturbed=True)
        watched.check_logs()
    watched.calm_down()
    watched.check_logs()
    watched.check_convergence()
    return watched


@pytest.mark.parametrize("seed", SEEDS)
def test_what_is_committed_stays_and_everyone_converges(seed: int) -> None:
    watched = simulate(seed, 6_000)
    assert watched.consumed > 100
    assert watched.answered.get(ErrorCode.NONE, 0) > 20


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1_000, 1_200))
def test_many_schedules(seed: int) -> None:
    simulate(seed, 15_000)
