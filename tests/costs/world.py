"""World: a broker process with topics, groups of each kind and transactional ids, that can be put back as it was.

    with World(ours(directory)) as world:
        cost = world.measure(recipe)

The state is made once and kept as a template. `reset` starts a broker on a fresh copy of it.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Protocol, Self

from tailrace.protocol.messages import (
    AddPartitionsToTxnRequest,
    ConsumerGroupHeartbeatRequest,
    CreateTopicsRequest,
    FindCoordinatorRequest,
    InitProducerIdRequest,
    MetadataRequest,
    OffsetCommitRequest,
    ProduceRequest,
    ShareGroupHeartbeatRequest,
)
from tests.costs.measure import DEADLINE_S, Bystander, Cost, measure
from tests.costs.recipe import Recipe
from tests.costs.values import Names
from tests.support.api_cases.common import batch
from tests.support.kafka_broker import KafkaBroker
from tests.support.kafka_install import kafka_installation
from tests.support.raw_client import RawClient
from tests.support.streams_member import StreamsMember, word_count
from tests.support.tailrace_process import TailraceProcess

TOPICS: Final = 200
GROUPS: Final = 50
TRANSACTIONS: Final = 30
RECORDS: Final = 20
BYSTANDER_TOPIC: Final = "bystander"
GROWTH_KEPT_MAX: Final = 300_000_000
SETTINGS: Final = {
    "node.id": "1",
    "offsets.topic.num.partitions": "4",
    "transaction.state.log.num.partitions": "4",
    "share.coordinator.state.topic.num.partitions": "4",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "group.initial.rebalance.delay.ms": "0",
    "auto.create.topics.enable": "true",
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}
_PATIENCE_S: Final = 60.0


class Process(Protocol):
    """A broker that can be started and stopped."""

    port: int

    @property
    def pid(self) -> int: ...
    @property
    def directory(self) -> Path: ...
    def start(self) -> None: ...
    def stop(self) -> None: ...
    def kill(self) -> None: ...
    @property
    def log_dir(self) -> Path: ...
    @property
    def is_running(self) -> bool: ...


class OurProcess:
    """A broker of ours."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        settings = {**SETTINGS, "tailrace.telemetry.enable": "true", "tailrace.metrics.port": "0"}
        options = [part for key, value in settings.items() for part in ("-o", f"{key}={value}")]
        self._broker = TailraceProcess(directory / "data", *options)
        self.port = self._broker.port

    @property
    def pid(self) -> int:
        assert self._broker.process is not None
        return self._broker.process.pid

    @property
    def log_dir(self) -> Path:
        return self._broker.data

    @property
    def is_running(self) -> bool:
        return self._broker.process is not None and self._broker.process.poll() is None

    def start(self) -> None:
        self._broker.start()

    def stop(self) -> None:
        assert self._broker.stop() == 0, self._broker.errors

    def kill(self) -> None:
        if self._broker.process is not None:
            self._broker.kill()


class KafkaProcess:
    """An Apache Kafka with its default numbers of threads and 1 GB of heap, in the JVM settings of the tests."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        threads = {"num.network.threads": "3", "num.io.threads": "8"}
        self._broker = KafkaBroker(kafka_installation(), directory, properties={**SETTINGS, **threads}, heap="1g")
        self.port = self._broker.port

    @property
    def pid(self) -> int:
        return self._broker.pid

    @property
    def log_dir(self) -> Path:
        return self._broker.data

    @property
    def is_running(self) -> bool:
        return self._broker.process is not None and self._broker.process.poll() is None

    def start(self) -> None:
        self._broker.start()

    def stop(self) -> None:
        self._broker.stop()

    def kill(self) -> None:
        if self._broker.process is not None:
            self._broker.crash()
        self._broker._crashed = False  # a template follows, which was stopped cleanly


class World:
    def __init__(self, process: Process) -> None:
        self.process = process
        self._template = process.directory / "template"
        self._bystander: Bystander | None = None
        self.names = Names(1, [], [], {}, [], str(process.log_dir), b"")
        self.resets = 0

    def __enter__(self) -> Self:
        try:
            self.process.start()
            self.names = populate(f"127.0.0.1:{self.process.port}", self.process.log_dir)
            self.process.stop()
            shutil.move(self.process.log_dir, self._template)
            self.reset()
        except BaseException:
            self.process.kill()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()

    def reset(self) -> None:
        """Start the broker again on the state that `populate` made."""
        self._end()
        self.resets += 1
        shutil.rmtree(self.process.log_dir, ignore_errors=True)
        shutil.copytree(self._template, self.process.log_dir)
        self.process.start()
        _warm_up(f"127.0.0.1:{self.process.port}", self.names)
        self._bystander = Bystander(self.process.port, self.process.pid, BYSTANDER_TOPIC, self.names.batch)

    def measure(self, recipe: Recipe, deadline_s: float = DEADLINE_S) -> Cost:
        """Send one request and return its cost."""
        return self.measure_frame(recipe.frame(self.names), deadline_s)

    def measure_frame(self, frame: bytes, deadline_s: float = DEADLINE_S) -> Cost:
        """Send a frame and return its cost; afterwards the broker serves, if need be a new one."""
        assert self._bystander is not None
        cost = measure(self.process.port, self.process.pid, self._bystander, frame, deadline_s)
        if cost.outcome in ("ended", "too long") or cost.peak_bytes > GROWTH_KEPT_MAX or cost.seconds > 2:
            self.reset()
        return cost

    def _end(self) -> None:
        if self._bystander is not None:
            self._bystander.close()
            self._bystander = None
        self.process.kill()


def populate(bootstrap: str, log_dir: Path) -> Names:
    """Make topics, groups of each kind and transactional ids; return their names."""
    now_ms = int(time.time() * 1000)
    records = batch(now_ms, *[b"value"] * RECORDS)
    topics = [f"t-{number:03}" for number in range(TOPICS)]
    with RawClient(bootstrap, timeout_s=120) as client:
        _create_topics(client, [*topics, BYSTANDER_TOPIC])
        found = client.ask(MetadataRequest(topics=None), 12).topics
        ids = {topic.name: topic.topic_id for topic in found}
        for topic in topics[:20]:
            _produce(client, topic, records)
        groups = {kind: [f"{kind}-{number:02}" for number in range(GROUPS)] for kind in _GROUP_MAKERS}
        for kind, make in _GROUP_MAKERS.items():
            for name in groups[kind]:
                _until_served(client, name, lambda make=make, name=name: make(client, name, topics[:5]))
        transactions = [f"transaction-{number:02}" for number in range(TRANSACTIONS)]
        for name in transactions:
            _begin_transaction(client, name, topics[0])
    single = batch(now_ms, b"value")
    return Names(1, topics, [ids[name] for name in topics], groups, transactions, str(log_dir), single)


def _create_topics(client: RawClient, names: list[str]) -> None:
    wanted = CreateTopicsRequest(timeout_ms=60_000)
    wanted.topics = [wanted.CreatableTopic(name=name, num_partitions=1, replication_factor=1) for name in names]
    answer = client.ask(wanted, 7)
    assert not any(topic.error_code for topic in answer.topics), answer


def _produce(client: RawClient, topic: str, records: bytes) -> None:
    produce = ProduceRequest(acks=-1, timeout_ms=5000)
    data = produce.TopicProduceData(name=topic, partition_data=[produce.PartitionProduceData(index=0, records=records)])
    produce.topic_data = [data]
    deadline = time.monotonic() + _PATIENCE_S
    while client.ask(produce, 9).responses[0].partition_responses[0].error_code:  # the leader is not there yet
        assert time.monotonic() < deadline, topic
        time.sleep(0.05)


def _until_served(client: RawClient, group: str, ask: Callable[[], Any]) -> None:
    deadline = time.monotonic() + _PATIENCE_S
    while code := ask():
        assert time.monotonic() < deadline, f"{group} is refused with {code}"
        client.ask(FindCoordinatorRequest(key=group), 1)
        time.sleep(0.05)


def _classic(client: RawClient, group: str, topics: list[str]) -> int:
    commit = OffsetCommitRequest(group_id=group)
    commit.topics = [
        commit.OffsetCommitRequestTopic(
            name=topic, partitions=[commit.OffsetCommitRequestPartition(partition_index=0, committed_offset=1)]
        )
        for topic in topics
    ]
    return max(int(client.ask(commit, 8).topics[0].partitions[0].error_code), 0)


def _consumer(client: RawClient, group: str, topics: list[str]) -> int:
    beat = ConsumerGroupHeartbeatRequest(group_id=group, member_id=f"member-{group}", member_epoch=0)
    beat.rebalance_timeout_ms = 60_000
    beat.subscribed_topic_names = topics
    beat.topic_partitions = []
    return int(client.ask(beat, 1).error_code)


def _share(client: RawClient, group: str, topics: list[str]) -> int:
    beat = ShareGroupHeartbeatRequest(group_id=group, member_id=f"member-{group}", member_epoch=0)
    beat.subscribed_topic_names = topics
    return int(client.ask(beat, 1).error_code)


def _streams(client: RawClient, group: str, topics: list[str]) -> int:
    member = StreamsMember(group, f"member-{group}", word_count(group, topics[0])[:1])
    member.subtopologies[0].repartition_sink_topics = []
    member.beat(client)
    return 0 if member.epoch else 1


_GROUP_MAKERS: Final = {"classic": _classic, "consumer": _consumer, "share": _share, "streams": _streams}


def _begin_transaction(client: RawClient, name: str, topic: str) -> None:
    deadline = time.monotonic() + _PATIENCE_S
    while (
        answer := client.ask(InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=900_000), 4)
    ).error_code:
        assert time.monotonic() < deadline, answer
        client.ask(FindCoordinatorRequest(key=name, key_type=1), 1)
        time.sleep(0.05)
    request = AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=name,
        v3_and_below_producer_id=answer.producer_id,
        v3_and_below_producer_epoch=answer.producer_epoch,
    )
    request.v3_and_below_topics = [request.AddPartitionsToTxnTopic(name=topic, partitions=[0])]
    client.ask(request, 3)


def _warm_up(bootstrap: str, names: Names) -> None:
    """Wait until topics and coordinators serve, so that no measurement contains their start."""
    with RawClient(bootstrap) as client:
        _produce(client, BYSTANDER_TOPIC, names.batch)
        for group in names.groups["classic"][:8]:
            _until_served(client, group, lambda group=group: _classic(client, group, names.topics[:1]))
