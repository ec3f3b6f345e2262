"""Watched: a simulated cluster under load and faults: its producers and readers, its faults, and the promises to
clients.

simulate(seed, ms)        a schedule: so much virtual time with faults, then calm until all replicas are equal
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from random import Random

from tailrace.model.errors import ErrorCode
from tailrace.model.ids import TopicPartition
from tailrace.protocol.messages import FetchResponse
from tests.simulation.cluster import Cluster
from tests.simulation.controller import KEYS, Controller
from tests.simulation.invariants import Invariants
from tests.simulation.network import Network
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
from tests.simulation.reading import aborted_in, committed_values, values_of
from tests.simulation.scripts import SCRIPTS, Stage
from tests.simulation.weather import Weather
from tests.support.batches import batch

CALM_MS = 12_000  # within this time all replicas are equal
CALM_STEP_MS = 250
STILL_MS = 750  # within this time all messages in flight have arrived
STEP_MS = 50


class Watched:
    def __init__(self, seed: int, controller: Callable[[Network], Controller] = Controller) -> None:
        self.random = Random(seed)
        self.weather = Weather(self.random, tuple(SCRIPTS))
        self.cluster = Cluster(self.random, self.weather, controller)
        self.began_ms = self.cluster.network.now_ms
        self.invariants = Invariants(self.cluster)
        self.stage = Stage(self.cluster, lambda key: len(self.acknowledged[key]))
        self.acknowledged: dict[TopicPartition, dict[int, bytes]] = {key: {} for key in KEYS}
        # one process's replica → the largest high watermark that a consumer saw there
        self.seen: dict[object, int] = {}
        self.produced = 0
        self.answered: Counter[int] = Counter()  # error code → number of Produce requests that ended with it
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
            assert self.acknowledged[key].setdefault(offset, value) == value, "two records have the same offset"

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
        self.invariants.check(one)

    def consume(self) -> None:
        """Read from any replica, as a consumer with a rack may."""
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
        self.invariants.check(one)  # a late timer of the purgatory may have changed something
        answer = asked.only
        if answer.error_code:
            return
        life = (one.broker_id, one.epoch, key, partition.leader_epoch)
        assert answer.high_watermark >= self.seen.get(life, 0), "the high watermark moved back"
        self.seen[life] = answer.high_watermark
        committed = self.invariants.committed[key]
        for at, epoch, value in values_of(bytes_of(answer)):
            self.consumed += 1
            assert at < answer.high_watermark, "a consumer saw an uncommitted record"
            assert at < len(committed), "a consumer saw a record that no leader has committed"
            assert committed[at] == (epoch, value), "a committed record changed"
        if is_committed:
            self._check_committed(key, answer)

    def _check_committed(self, key: TopicPartition, answer: FetchResponse.PartitionData) -> None:
        """Check a fetch response as a read_committed client would read it."""
        read = committed_values(bytes_of(answer), aborted_in(answer))
        for producer in self.transactional:
            if producer.key == key:
                assert not read & producer.aborted, "an aborted record was read"
                assert not {one for one in read if one.startswith(b"%d:" % producer.host_id)} - producer.committed, (
                    "a record was read before its transaction ended"
                )

    def delete_records(self, key: TopicPartition) -> None:
        """Delete records up to an offset that every producer has known for long: a producer may resend later ones."""
        one = leader_of(self.cluster, key)
        if one is None:
            return
        partition = one.partition(key)
        assert partition is not None
        node = one.now()
        known = min(producer.acknowledged_offset for producer in self.producers if producer.key == key)
        offset = min(known, partition.log.high_watermark)
        if offset > 0:
            partition.delete_records(self.random.randint(0, offset), node.now_ms)
            partition.log.delete_old_segments(node.now_ms)
            node.check(key)

    # Faults

    def disturb(self) -> None:
        cluster, random = self.cluster, self.random
        broker_id = random.choice(list(cluster.brokers))
        key = random.choice(KEYS)
        what = self.weather.fault(random)
        self.faults[what] += 1
        if what == "kill" and len(cluster.alive()) > 2:
            cluster.kill(broker_id)
        elif what == "leave" and len(cluster.alive()) > 2:
            cluster.leave(broker_id)
        elif what == "power":
            # The worst victim is a broker that has just reported its progress.
            broker_id = random.choice(cluster.joining() or [broker_id])
            if cluster.lose_power(broker_id):
                cluster.start(broker_id)
        elif what == "stop":
            cluster.stop(broker_id, random.choice([20, 200, 900, 2_500]))
        elif what == "deaf":
            cluster.brokers[broker_id].be_deaf(random.choice([100, 500, 2_000]))
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

    def play(self) -> None:
        """Play one of the scripts."""
        name = self.random.choice(self.weather.scripts)
        self.faults[name] += 1
        self.stage.play(name, self.random.choice(KEYS))

    # Promises to clients

    def check_clients(self) -> None:
        """Check that all acknowledged records are committed, and each producer's records are committed once and in
        order.
        """
        committed = self.invariants.committed
        for key in KEYS:
            for offset, value in self.acknowledged[key].items():
                assert offset < len(committed[key]), f"acknowledged {key} {offset} is not committed"
                assert committed[key][offset][1] == value, (
                    f"acknowledged {key} {offset} differs from the committed record"
                )
        for producer in self.producers:
            prefix = b"%d:" % producer.host_id
            found = [value for _, value in committed[producer.key] if value.startswith(prefix)]
            assert found == [producer.value(n) for n in range(len(found))], f"{producer.key}: {found}"
            assert producer.number <= len(found) <= producer.number + IN_FLIGHT

    def check_readers(self) -> None:
        """Check at the end that every replica gives read_committed readers the same records, without a gap."""
        for key in KEYS:
            for one in self.cluster.alive():
                partition = one.partition(key)
                if partition is None:
                    continue
                read = self.invariants.read_committed(one, partition)
                start, end = partition.log.log_start_offset, partition.log.last_stable_offset
                there = {value for _, value in self.invariants.committed[key][start:end]}
                for producer in self.transactional:
                    if producer.key == key:
                        assert there & producer.committed <= read, "a committed record was not read"
                        assert not read & producer.aborted, "an aborted record was read"

    # A schedule

    def run(self, ms: int) -> None:
        cluster, random, weather = self.cluster, self.random, self.weather
        for _ in range(ms // STEP_MS):
            for _ in range(random.randint(0, weather.appends)):
                self.produce()
            self.consume()
            if random.random() < weather.fault_rate:
                self.disturb()
            if not self.stage.is_playing and random.random() < weather.script_rate:
                self.play()
            for broker_id in cluster.brokers:
                if random.random() < weather.restarts:
                    cluster.start(broker_id)
            if random.random() < weather.elections:
                cluster.controller.move_leader(random.choice(KEYS))
            cluster.network.run(STEP_MS, self.invariants.check)
        self.invariants.check_logs()
        self.check_clients()

    def calm_down(self) -> None:
        """End the faults: start all brokers, lose nothing, write nothing. In the end all replicas must be equal."""
        cluster, network = self.cluster, self.cluster.network
        cluster.calm_down()
        for producer in self.producers:
            producer.is_ending = True
        end_ms = network.now_ms + CALM_MS
        # This is the last election. After it nothing resets a broken fetch session by chance.
        preferred = self.random.choice(list(cluster.brokers))
        for key in KEYS:
            cluster.controller.move_leader(key, preferred)
        network.run(STILL_MS, self.invariants.check)
        while not self.invariants.have_converged() and network.now_ms < end_ms:
            for broker_id in cluster.brokers:
                cluster.start(broker_id)
            network.run(CALM_STEP_MS, self.invariants.check)
        self.invariants.check_logs()
        self.check_clients()
        self.invariants.check_convergence()
        self.check_readers()

    def play_out(self, ms: int) -> None:
        for _ in range(ms // 1_000):
            self.run(1_000)
        self.calm_down()


def simulate(seed: int, ms: int, controller: Callable[[Network], Controller] = Controller) -> Watched:
    watched = Watched(seed, controller)
    watched.play_out(ms)
    return watched
