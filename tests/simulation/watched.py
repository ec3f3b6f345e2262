"""Watched: a simulated cluster at work, and everything about it that must hold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

from tailrace.model.errors import ErrorCode
from tailrace.model.ids import TopicPartition
from tailrace.protocol.messages import FetchResponse
from tailrace.records.batch import RecordBatch
from tailrace.records.conversion import split_any
from tailrace.records.record import iter_records
from tailrace.replication.partition import Partition
from tests.simulation.cluster import Cluster, SimulatedBroker
from tests.simulation.controller import KEYS
from tests.simulation.network import Host
from tests.simulation.node import Asked, bytes_of, want
from tests.simulation.producers import (
    IN_FLIGHT,
    IdempotentProducer,
    PipelinedProducer,
    Produced,
    TransactionalProducer,
    leader_of,
    produce_at,
)
from tests.support.batches import batch

CALM_MS = 12_000
STEP_MS = 50
FAULTS = (
    *(["kill"] * 4),
    *(["stop", "cut", "elect"] * 3),
    *(["mend", "power", "fail over", "reassign"] * 2),
    "delete",
)

Record = tuple[int, bytes]  # leader epoch and value


def values_of(data: bytes) -> Iterator[tuple[int, int, bytes]]:
    """(offset, leader epoch, value) of every record."""
    for one in split_any(data):
        assert isinstance(one, RecordBatch)
        for record in iter_records(one):
            yield record.offset, one.leader_epoch, bytes(record.value or b"")


def aborted_in(answer: FetchResponse.PartitionData) -> list[tuple[int, int]]:
    return [(one.producer_id, one.first_offset) for one in answer.aborted_transactions or []]


def committed_values(data: bytes, aborted: list[tuple[int, int]]) -> set[bytes]:
    """The values that are left of what was fetched with read_committed, by the list of what was aborted."""
    found: set[bytes] = set()
    open_aborted: set[int] = set()
    waiting = sorted(aborted, key=lambda one: one[1])
    for one in split_any(data):
        assert isinstance(one, RecordBatch)
        while waiting and waiting[0][1] <= one.last_offset:
            open_aborted.add(waiting.pop(0)[0])
        if one.is_control:
            open_aborted.discard(one.producer_id)
        elif not (one.is_transactional and one.producer_id in open_aborted):
            found.update(bytes(record.value or b"") for record in iter_records(one))
    return found


def history_of(partition: Partition, start: int = 0) -> dict[int, Record]:
    """What a log has from an offset on, before its start too."""
    found: dict[int, Record] = {}
    for segment in reversed(list(partition.log.segments)):
        for header, view in segment.batches():
            if header.next_offset > start:
                found.update({offset: (epoch, value) for offset, epoch, value in values_of(bytes(view))})
        if segment.base_offset <= start:
            break
    return found


class Watched:
    def __init__(self, seed: int) -> None:
        self.cluster = Cluster(seed)
        self.random = self.cluster.random
        self.is_stormy = seed % 2 == 0  # elections in quick succession, with few records between
        self.committed: dict[TopicPartition, list[Record]] = {key: [] for key in KEYS}
        self.acknowledged: dict[TopicPartition, dict[int, bytes]] = {key: {} for key in KEYS}
        self.seen: dict[object, int] = {}  # (replica's life) → the largest high watermark that a consumer saw there
        self.epochs: dict[object, tuple[int, int]] = {}
        self.leaders: dict[tuple[TopicPartition, int], int] = {}
        self.produced = 0
        self.answered: Counter[int] = Counter()  # error code → how many produces ended so
        self.faults: Counter[str] = Counter()
        self.consumed = 0
        self.transactional = [
            TransactionalProducer(self.cluster, 200 + n, key, self._acknowledge(key)) for n, key in enumerate(KEYS)
        ]
        self.producers = [
            *(IdempotentProducer(self.cluster, 100 + n, key, self._acknowledge(key)) for n, key in enumerate(KEYS)),
            *(PipelinedProducer(self.cluster, 300 + n, key, self._acknowledge(key)) for n, key in enumerate(KEYS)),
            *self.transactional,
        ]

    # Clients

    def _acknowledge(self, key: TopicPartition) -> Callable[[int, bytes], None]:
        def note(offset: int, value: bytes) -> None:
            self.answered[ErrorCode.NONE] += 1
            assert self.acknowledged[key].setdefault(offset, value) == value, "one offset for two records"

        return note

    def produce(self) -> None:
        key = self.random.choice(KEYS)
        one = leader_of(self.cluster, key)
        if one is None or one.stopped_until_ms > self.cluster.network.now_ms:
            return
        self.produced += 1
        value = b"%d" % self.produced
        acks = self.random.choice([-1, -1, 1])

        def answer(answered: Produced) -> None:
            if acks == -1:
                self.answered[answered.error] += 1
                if answered.error == ErrorCode.NONE:
                    self.acknowledged[key][answered.base_offset] = value

        produce_at(one, key, batch(value, timestamp=self.cluster.network.now_ms), acks, answer)
        self.check(one)

    def consume(self) -> None:
        """Read from any replica, as clients in racks may."""
        key = self.random.choice(KEYS)
        alive = [one for one in self.cluster.alive() if one.partition(key) is not None]
        if not alive:
            return
        one = self.random.choice(alive)
        partition = one.partition(key)
        assert partition is not None
        offset = self.random.randint(partition.log.log_start_offset, max(partition.log.high_watermark, 0))
        is_committed = self.random.random() < 0.4
        asked: Asked = one.now().fetch([want(partition, offset)], max_wait_ms=0, isolation_level=int(is_committed))
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
            assert at < len(committed), "a consumer saw what no leader has committed"
            assert committed[at] == (epoch, value), "a committed record changed"
        if is_committed:
            self._check_committed(partition, offset, answer)

    def _check_committed(self, partition: Partition, offset: int, answer: FetchResponse.PartitionData) -> None:
        """What a client with read_committed would make of an answer."""
        read = committed_values(bytes_of(answer), aborted_in(answer))
        for producer in self.transactional:
            if producer.key == partition.key:
                assert not read & producer.aborted, "an aborted record was read"
                assert not {one for one in read if one.startswith(b"%d:" % producer.host_id)} - producer.committed, (
                    "a record was read before its transaction ended"
                )

    def delete_records(self, key: TopicPartition) -> None:
        """Up to what every producer has long been told of: it may ask again about what comes after."""
        one = leader_of(self.cluster, key)
        if one is None:
            return
        partition = one.partition(key)
        assert partition is not None
        node = one.now()
        told = min(producer.settled_offset for producer in self.producers if producer.key == key)
        offset = min(told, partition.log.high_watermark)
        if offset > 0:
            partition.delete_records(self.random.randint(0, offset), node.now_ms)
            partition.log.delete_old_segments(node.now_ms)
            node.check(key)

    # Faults

    def disturb(self) -> None:
        cluster, random = self.cluster, self.random
        broker_id = random.choice(list(cluster.brokers))
        key = random.choice(KEYS)
        what = random.choice(FAULTS)
        self.faults[what] += 1
        if what == "kill" and len(cluster.alive()) > 2:
            cluster.kill(broker_id)
        elif what == "power":
            # Worst is one whose progress has just been told.
            broker_id = random.choice(cluster.joining() or [broker_id])
            if cluster.lose_power(broker_id):
                cluster.start(broker_id)
        elif what == "stop":
            cluster.stop(broker_id, random.choice([20, 200, 900, 2_500]))
        elif what == "cut":
            cluster.cut(broker_id)
        elif what == "mend":
            cluster.network.mend()
        elif what == "fail over":
            cluster.controller.replace_active(random.choice([100, 800]))
        elif what == "elect":
            cluster.controller.move_leader(key)
        elif what == "reassign":
            cluster.controller.reassign(key)
        elif what == "delete":
            self.delete_records(key)

    # What must hold after every event

    def check(self, host: Host) -> None:
        if isinstance(host, SimulatedBroker) and host.is_alive:
            for partition in host.node.partitions:
                self._check_replica(host, partition)

    def _check_replica(self, one: SimulatedBroker, partition: Partition) -> None:
        key, log = partition.key, partition.log
        committed = self.committed[key]
        end, high_watermark = log.log_end_offset, log.high_watermark
        assert high_watermark <= end
        life = (one.broker_id, one.epoch, key)
        now, before = (partition.leader_epoch, partition.partition_epoch), self.epochs.get(life, (-1, -1))
        if now != before:
            assert now[0] >= before[0], "the leader epoch went back"
            assert now[1] >= before[1], "the partition epoch went back"
            self.epochs[life] = now
        if one.broker_id in self.cluster.controller.states[key].isr:
            assert end >= len(committed), f"{one.broker_id} is in sync with {key}, without {end}..{len(committed)}"
        leader = partition.leader
        if leader is None:
            return
        known = self.leaders.setdefault((key, partition.leader_epoch), one.broker_id)
        assert known == one.broker_id, f"{known} and {one.broker_id} lead {key} in epoch {partition.leader_epoch}"
        # Also one that has been deposed and does not know it yet: what it commits is committed.
        if high_watermark > len(committed):
            for member in leader.isr.maximal - {one.broker_id}:
                other = self.cluster.brokers[member]
                replica = other.partition(key)
                # What it told in an earlier life is no promise: the controller will not have it in sync.
                if other.is_alive and replica is not None and leader.followers[member].broker_epoch == other.epoch:
                    theirs = replica.log.log_end_offset
                    assert high_watermark <= theirs, f"{key}: committed {high_watermark}, but {member} ends at {theirs}"
            history = history_of(partition, len(committed))
            committed.extend(history[offset] for offset in range(len(committed), high_watermark))

    # What must hold now and then

    def check_logs(self) -> None:
        """Every replica in sync has everything committed, and all that was acknowledged is committed, once."""
        for key in KEYS:
            committed = self.committed[key]
            for member in self.cluster.controller.states[key].isr:
                one = self.cluster.brokers[member]
                partition = one.partition(key)
                if one.is_alive and partition is not None:
                    entries = partition.log.epochs.entries
                    assert entries == sorted(entries)
                    self._check_history(member, partition, committed)
            for offset, value in self.acknowledged[key].items():
                assert offset < len(committed), f"acknowledged {key} {offset} is not committed"
                assert committed[offset][1] == value, f"acknowledged {key} {offset} is not what was committed"
        for producer in self.producers:
            prefix = b"%d:" % producer.host_id
            found = [value for _, value in self.committed[producer.key] if value.startswith(prefix)]
            assert found == [producer.value(n) for n in range(len(found))], f"{producer.key}: {found}"
            assert producer.number <= len(found) <= producer.number + IN_FLIGHT

    def _check_history(self, member: int, partition: Partition, committed: list[Record]) -> None:
        start = partition.log.log_start_offset
        history = history_of(partition, start)
        for offset in range(start, len(committed)):
            assert history.get(offset) == committed[offset], f"{member} lost or changed {partition.key} {offset}"

    def check_convergence(self) -> None:
        for key in KEYS:
            state = self.cluster.controller.states[key]
            assert sorted(state.isr) == sorted(state.replicas), "not everyone has come back into sync"
            for broker_id, one in self.cluster.brokers.items():
                partition = one.partition(key)
                assert (partition is not None) == (broker_id in state.replicas)
                if partition is not None:
                    end = len(self.committed[key])
                    assert (partition.log.high_watermark, partition.log.log_end_offset) == (end, end), broker_id
                    self._check_history(broker_id, partition, self.committed[key])
                    self._check_transactions(one, partition)

    def _check_transactions(self, one: SimulatedBroker, partition: Partition) -> None:
        """A reader of committed records gets all of them that are still there, up to a transaction without an end."""
        start, end = partition.log.log_start_offset, partition.log.last_stable_offset
        read: set[bytes] = set()
        offset = start
        while offset < end:
            answer = one.now().fetch([want(partition, offset)], max_wait_ms=0, isolation_level=1).only
            assert answer.last_stable_offset == end
            data = bytes_of(answer)
            read |= committed_values(data, aborted_in(answer))
            offset = max(at for at, _, _ in values_of(data)) + 1
        there = {value for _, value in self.committed[partition.key][start:end]}
        for producer in self.transactional:
            if producer.key == partition.key:
                assert there & producer.committed <= read, "a committed record was not read"
                assert not read & producer.aborted, "an aborted record was read"

    # A schedule

    def run(self, ms: int) -> None:
        cluster, random = self.cluster, self.random
        for _ in range(ms // STEP_MS):
            for _ in range(random.randint(0, 3)):
                self.produce()
            self.consume()
            if random.random() < 0.15:
                self.disturb()
            for broker_id in cluster.brokers:
                if random.random() < 0.08:
                    cluster.start(broker_id)
            if self.is_stormy and random.random() < 0.5:
                cluster.controller.move_leader(random.choice(KEYS))
            cluster.network.run(STEP_MS, self.check)

    def calm_down(self) -> None:
        """No more trouble: everybody is started, nothing is lost, nobody writes."""
        cluster = self.cluster
        cluster.calm_down()
        for producer in self.producers:
            producer.is_ending = True
        for _ in range(CALM_MS // 1_000):
            for broker_id in cluster.brokers:
                cluster.start(broker_id)
            cluster.network.run(1_000, self.check)


def simulate(seed: int, ms: int) -> Watched:
    watched = Watched(seed)
    for _ in range(ms // 1_000):
        watched.run(1_000)
        watched.check_logs()
    watched.calm_down()
    watched.check_logs()
    watched.check_convergence()
    return watched
