"""The same random requests of brokers and administrators to Kafka's controller and to ours: answers and records.

Kafka's controller has indexes from a broker to the partitions with it in the ISR or ELR. They keep entries that are no
longer true. After some thousand steps it therefore changes partitions that need no change. The runs end before that.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tailrace.metadata.image.features import SUPPORTED
from tailrace.metadata.image.partition_registration import PartitionRegistration
from tailrace.model.ids import TopicPartition
from tailrace.protocol import messages as m
from tailrace.protocol.json_form import to_dict
from tests.support.controller_listener import PlayedController
from tests.support.controller_sides import KafkaSide, OurSide, Side
from tests.support.kafka_controllers import KafkaControllers
from tests.support.kafka_install import KafkaInstallation

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

BROKERS = (1, 2, 3, 4)
TOPICS = ("a", "b", "c")
NO_TIMERS = {"auto.leader.rebalance.enable": "false", "broker.session.timeout.ms": "3600000"}

# A step makes a request for each side, because epochs and ids differ, and names the version to send it in.
Step = tuple[Callable[[Side], Any], int]


def directories(broker: int) -> list[bytes]:
    return [bytes([100 + broker, number]) * 8 for number in range(1 + broker % 2)]


class Dice:
    """Random steps. The state of our side says what is possible, so that many requests make sense."""

    def __init__(self, seed: int, ours: OurSide, *, deletes: bool) -> None:
        self._random = Random(seed)
        self._ours = ours
        # Kafka's controller does not remove a deleted topic from its indexes of log directories and of eligible leader
        # replicas, and fails when it meets it there. So either topics are deleted, or
        # directories fail. A topic that ever had eligible leader replicas is not deleted.
        self._deletes = deletes
        self._with_elr: set[bytes] = set()

    def step(self) -> Step:
        partitions = self._ours.controller.image.partitions()
        self._with_elr |= {topic.id for topic, _, partition in partitions if partition.elr}
        chance = self._random.choices(
            [
                self._register, self._heartbeat, self._create, self._delete, self._alter_partition, self._elect,
                self._reassign, self._configure, self._assign, self._producer_ids, self._unregister, self._grow,
            ],
            [6, 25, 6, 2, 25, 6, 8, 5, 5, 2, 1, 2],
        )  # fmt: skip
        return chance[0]()

    # Brokers

    def _register(self) -> Step:
        random, broker = self._random, self._random.choice(BROKERS)
        incarnation = bytes([broker]) * 15 + bytes([random.choice([1, 1, 1, 2])])
        known = {name: level for name, level in SUPPORTED.items() if random.random() < 0.99}
        cluster = None if random.random() < 0.97 else "another"
        kind = m.BrokerRegistrationRequest
        rack = random.choice([None, "x"])
        place = directories(broker) if random.random() < 0.95 else directories(broker)[:1] * 2

        def request(side: Side) -> Any:
            return kind(
                broker_id=broker,
                cluster_id=self._ours.controller.image.cluster_id if cluster is None else cluster,
                incarnation_id=incarnation,
                listeners=[kind.Listener(name="PLAINTEXT", host="h", port=9000 + broker)],
                features=[
                    kind.Feature(name=name, min_supported_version=one.low, max_supported_version=one.high)
                    for name, one in known.items()
                ],
                rack=rack,
                log_dirs=place,
            )

        return request, 4

    def _heartbeat(self) -> Step:
        random, broker = self._random, self._random.choice(BROKERS)
        wants = random.choices([(False, False), (True, False), (False, True), (True, True)], [8, 1, 1, 1])[0]
        is_behind, is_stale = random.random() < 0.05, random.random() < 0.03
        offline = [one for one in directories(broker) if random.random() < 0.03 and not self._deletes]

        def request(side: Side) -> Any:
            return m.BrokerHeartbeatRequest(
                broker_id=broker,
                broker_epoch=side.epochs.get(broker, 7) + is_stale,
                current_metadata_offset=0 if is_behind else 1_000_000,
                want_fence=wants[0],
                want_shut_down=wants[1],
                offline_log_dirs=offline,
            )

        return request, 1

    def _unregister(self) -> Step:
        broker = self._random.choice(BROKERS)
        return lambda _: m.UnregisterBrokerRequest(broker_id=broker), 0

    def _producer_ids(self) -> Step:
        broker = self._random.choice(BROKERS)
        return (
            lambda side: m.AllocateProducerIdsRequest(broker_id=broker, broker_epoch=side.epochs.get(broker, 7)),
            0,
        )

    # Topics

    def _create(self) -> Step:
        kind, random = m.CreateTopicsRequest, self._random
        size = random.randint(1, 3)
        replicas = [random.sample(BROKERS, size) for _ in range(random.randint(1, 3))]
        configs = [("unclean.leader.election.enable", "true")] if random.random() < 0.3 else []
        topic = kind.CreatableTopic(
            name=random.choice(TOPICS),
            num_partitions=-1,
            replication_factor=-1,
            assignments=[
                kind.CreatableReplicaAssignment(partition_index=number, broker_ids=one)
                for number, one in enumerate(replicas)
            ],
            configs=[kind.CreatableTopicConfig(name=key, value=text) for key, text in configs],
        )
        return lambda _: kind(topics=[topic], timeout_ms=10_000), 6

    def _delete(self) -> Step:
        name, topics = self._random.choice(TOPICS), self._ours.controller.image.topics
        if name in topics and (not self._deletes or topics[name].id in self._with_elr):
            name = "unknown"
        state = m.DeleteTopicsRequest.DeleteTopicState(name=name)
        return lambda _: m.DeleteTopicsRequest(topics=[state], timeout_ms=10_000), 6

    def _grow(self) -> Step:
        kind, random = m.CreatePartitionsRequest, self._random
        name = random.choice(TOPICS)
        count = len(self._ours.controller.image.topics[name].partitions) if name in self._known() else 1
        replicas = kind.CreatePartitionsAssignment(broker_ids=random.sample(BROKERS, random.randint(1, 3)))
        topic = kind.CreatePartitionsTopic(name=name, count=count + 1, assignments=[replicas])
        return lambda _: kind(topics=[topic], timeout_ms=10_000), 3

    def _configure(self) -> Step:
        kind, random = m.IncrementalAlterConfigsRequest, self._random
        key, texts = random.choice(
            [("unclean.leader.election.enable", ["true", "false"]), ("min.insync.replicas", ["1", "2", "3"])]
        )
        change = kind.AlterableConfig(name=key, config_operation=random.choice([0, 0, 1]), value=random.choice(texts))
        resource = kind.AlterConfigsResource(resource_type=2, resource_name=random.choice(TOPICS), configs=[change])
        return lambda _: kind(resources=[resource]), 1

    # Replicas

    def _known(self) -> set[str]:
        return set(self._ours.controller.image.topics)

    def _partition(self) -> tuple[str, int, PartitionRegistration | None]:
        name, number = self._random.choice(TOPICS), self._random.randint(0, 2)
        return name, number, self._ours.controller.image.partition(TopicPartition(name, number))

    def _alter_partition(self) -> Step:
        kind, random = m.AlterPartitionRequest, self._random
        name, number, known = self._partition()
        if known is None:
            known = PartitionRegistration((1, 2), (bytes(16), bytes(16)), (1,), 1)
        leader = known.leader if known.leader >= 0 and random.random() < 0.95 else random.choice(BROKERS)
        isr = [one for one in known.replicas if one == leader or random.random() < 0.7]
        if random.random() < 0.03:
            isr.append(random.choice(BROKERS))
        wrong = random.choices([0, 1, -1], [18, 1, 1])[0], random.choices([0, 1, -1], [18, 1, 1])[0]
        with_epochs = random.random() < 0.5
        recovery = known.leader_recovery_state if random.random() < 0.5 else 0

        def request(side: Side) -> Any:
            states = [
                kind.BrokerState(broker_id=one, broker_epoch=side.epochs.get(one, 7) if with_epochs else -1)
                for one in isr
            ]
            leader_epoch, partition_epoch = side.partition_epochs(name, number)
            partition = kind.PartitionData(
                partition_index=number,
                leader_epoch=leader_epoch + wrong[0],
                new_isr_with_epochs=states,
                leader_recovery_state=recovery,
                partition_epoch=partition_epoch + wrong[1],
            )
            return kind(
                broker_id=leader,
                broker_epoch=side.epochs.get(leader, 7),
                topics=[kind.TopicData(topic_id=side.topic_id(name), partitions=[partition])],
            )

        return request, 3

    def _elect(self) -> Step:
        kind, random = m.ElectLeadersRequest, self._random
        topics = None
        if random.random() < 0.8:
            topics = [kind.TopicPartitions(topic=random.choice(TOPICS), partitions=[0, 1])]
        election_type = random.choice([0, 0, 1])
        return lambda _: kind(election_type=election_type, topic_partitions=topics, timeout_ms=10_000), 2

    def _reassign(self) -> Step:
        kind, random = m.AlterPartitionReassignmentsRequest, self._random
        name, number, _ = self._partition()
        target = None if random.random() < 0.25 else random.sample(BROKERS, random.randint(1, 3))
        topic = kind.ReassignableTopic(
            name=name, partitions=[kind.ReassignablePartition(partition_index=number, replicas=target)]
        )
        may_change = random.random() < 0.8
        return (
            lambda _: kind(topics=[topic], timeout_ms=10_000, allow_replication_factor_change=may_change),
            1,
        )

    def _assign(self) -> Step:
        kind, random = m.AssignReplicasToDirsRequest, self._random
        name, number, known = self._partition()
        broker = random.choice(known.replicas) if known is not None and known.replicas else random.choice(BROKERS)
        place = random.choice(directories(broker))

        def request(side: Side) -> Any:
            topic = kind.TopicData(
                topic_id=side.topic_id(name), partitions=[kind.PartitionData(partition_index=number)]
            )
            return kind(
                broker_id=broker,
                broker_epoch=side.epochs.get(broker, 7),
                directories=[kind.DirectoryData(id=place, topics=[topic])],
            )

        return request, 0


def plain(value: Any, key: str = "") -> Any:
    """Return a response without the values in which two controllers may differ. Of a message only its presence
    counts.
    """
    if isinstance(value, dict):
        hidden = ("throttleTimeMs", "brokerEpoch", "topicId")
        return {name: plain(one, name) for name, one in value.items() if name not in hidden}
    if key == "errorMessage":
        return bool(value)
    if isinstance(value, list):
        parts = [plain(one) for one in value]
        return sorted(parts, key=repr) if all(isinstance(one, dict) for one in parts) else parts
    return value


def count_epochs_from_here(
    response: m.AlterPartitionResponse, before: dict[tuple[bytes, int], tuple[int, int]]
) -> None:
    """Replace epochs by their growth, because those of Kafka may have grown more."""
    for topic in response.topics:
        for one in topic.partitions:
            if not one.error_code:
                leader_epoch, partition_epoch = before[topic.topic_id, one.partition_index]
                one.leader_epoch -= leader_epoch
                one.partition_epoch -= partition_epoch


def ask(side: KafkaSide | OurSide, step: Step) -> tuple[Any, list[str]]:
    """Send a step, and return the answer and the records that it has caused."""
    make, version = step
    request = make(side)
    before = side.all_partition_epochs()
    response = side.ask(request, version)
    if isinstance(response, m.AlterPartitionResponse):
        count_epochs_from_here(response, before)
    if isinstance(request, m.BrokerRegistrationRequest) and not response.error_code:
        side.epochs[request.broker_id] = response.broker_epoch
    return plain(to_dict(response, version)), side.new_records()


@pytest.mark.parametrize(("seed", "steps", "deletes"), [(1, 1_500, False), (3, 1_000, False), (2, 1_000, True)])
def test_random_requests_have_the_same_answers_and_records(
    kafka: KafkaInstallation, tmp_path: Path, seed: int, steps: int, deletes: bool
) -> None:
    with KafkaControllers(kafka, tmp_path, properties=NO_TIMERS, is_formatted_here=True) as controllers:
        theirs = KafkaSide(controllers.nodes[0].port)
        ours = OurSide(PlayedController(NO_TIMERS, cluster_id=controllers.cluster_id))
        theirs.new_records()
        ours.new_records()
        dice = Dice(seed, ours, deletes=deletes)
        asked: list[str] = []
        written = 0
        for number in range(steps):
            step = dice.step()
            asked.append(f"{number}: {step[0](ours)!r}")
            expected, actual = ask(theirs, step), ask(ours, step)
            assert actual == expected, "\n".join([*asked[-6:], f"Kafka: {expected}", f"ours:  {actual}"])
            written += len(actual[1])
        assert written > steps / 4
