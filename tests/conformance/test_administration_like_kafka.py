"""The same random requests of administrators to Kafka's controller and to ours, over restarts of both: answers, and
records in their order. Sessions that expire, and the placement of replicas that nobody has assigned.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import pytest

from tailrace.metadata.image.features import SUPPORTED
from tailrace.model.errors import ErrorCode
from tailrace.protocol import messages as m
from tailrace.protocol.json_form import to_dict
from tests.support.controller_listener import PlayedController
from tests.support.controller_sides import KafkaSide, OurSide
from tests.support.kafka_controllers import KafkaControllers
from tests.support.kafka_install import KafkaInstallation
from tests.support.memory_files import MemoryFiles
from tests.support.replicated_cluster import eventually

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

Side = KafkaSide | OurSide
BROKERS = (1, 2, 3, 4)
TOPICS = ("a", "b", "unknown")
SETTINGS = {
    "auto.leader.rebalance.enable": "false",
    "broker.session.timeout.ms": "3600000",
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}
SESSION_MS = 2_000
SERVER_ERROR = '"errorCode": -1'
PAUSE_MS = 200


class Step(NamedTuple):
    request: Any
    version: int
    is_ordered: bool = False  # Kafka's records have an order that does not depend on a hash table


class Administrator:
    """Random requests."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)

    def step(self) -> Step:
        kinds: list[Callable[[], Step]] = [
            self._grant, self._revoke, self._credential, self._quota, self._feature,
            self._configure, self._replace_configs, self._create, self._grow, self._delete,
        ]  # fmt: skip
        return self._random.choices(kinds, [8, 4, 8, 8, 3, 10, 5, 4, 3, 2])[0]()

    # Rights

    def _grant(self) -> Step:
        kind, choice = m.CreateAclsRequest, self._random.choice
        creations = [
            kind.AclCreation(
                resource_type=choice([2, 2, 3, 4, 5, 6]),
                resource_name=choice(["orders", "or", "*", "kafka-cluster", ""]),
                resource_pattern_type=choice([3, 3, 4]),
                principal=choice(["User:alice", "User:*", "Group:x"]),
                host=choice(["*", "10.0.0.1", ""]),
                operation=choice([2, 3, 4, 8, 9, 12]),
                permission_type=choice([2, 3]),
            )
            for _ in range(self._random.randint(1, 3))
        ]
        return Step(kind(creations=creations), 3, is_ordered=True)

    def _revoke(self) -> Step:
        kind, choice = m.DeleteAclsRequest, self._random.choice
        chosen = kind.DeleteAclsFilter(
            resource_type_filter=choice([1, 2, 3, 4]),
            resource_name_filter=choice([None, "orders", "or"]),
            pattern_type_filter=choice([1, 2, 3, 4]),
            principal_filter=choice([None, "User:alice"]),
            host_filter=choice([None, "*"]),
            operation=choice([1, 2, 3]),
            permission_type=choice([1, 2, 3]),
        )
        return Step(kind(filters=[chosen]), 3)

    # Users and clients

    def _credential(self) -> Step:
        kind, random = m.AlterUserScramCredentialsRequest, self._random
        deletions = [
            kind.ScramCredentialDeletion(name=random.choice(["alice", "bob", ""]), mechanism=random.choice([1, 2, 3]))
            for _ in range(random.choice([0, 0, 1, 2]))
        ]
        upsertions = [
            kind.ScramCredentialUpsertion(
                name=random.choice(["alice", "bob", ""]),
                mechanism=random.choice([1, 1, 2, 2, 0]),
                iterations=random.choice([4_096, 8_192, 100, 16_385]),
                salt=random.randbytes(16),
                salted_password=random.randbytes(32),
            )
            for _ in range(random.choice([0, 1, 1, 2]))
        ]
        return Step(kind(deletions=deletions, upsertions=upsertions), 0)

    def _quota(self) -> Step:
        kind, random = m.AlterClientQuotasRequest, self._random
        # Without the default of all addresses: Kafka would refuse the connections of this test.
        entities = random.choice(
            [
                [("user", "alice")], [("user", None)], [("client-id", "c")], [("user", "alice"), ("client-id", "c")],
                [("ip", "10.0.0.1")], [("ip", "no host")], [("user", "alice"), ("ip", "10.0.0.1")], [],
                [("group", "g")], [("user", "alice"), ("user", "bob")],
            ]
        )  # fmt: skip
        keys = ["producer_byte_rate", "consumer_byte_rate", "request_percentage", "connection_creation_rate", "x"]
        ops = [
            kind.OpData(
                key=random.choice(keys),
                value=random.choice([1.0, 1_000.0, 0.5, -1.0, 0.0]),
                remove=random.random() < 0.3,
            )
        ]
        entity = [kind.EntityData(entity_type=key, entity_name=name) for key, name in entities]
        is_dry = random.random() < 0.2
        return Step(kind(entries=[kind.EntryData(entity=entity, ops=ops)], validate_only=is_dry), 1)

    # Features

    def _feature(self) -> Step:
        kind, random = m.UpdateFeaturesRequest, self._random
        name = random.choice([*SUPPORTED, "unknown.version"])
        level = random.randint(0, 3) if name != "metadata.version" else random.choice([6, 19, 29, 30, 31])
        is_dry = name == "metadata.version" or random.random() < 0.3
        update = kind.FeatureUpdateKey(
            feature=name, max_version_level=level, upgrade_type=random.choice([1, 1, 2, 3, 0])
        )
        return Step(kind(timeout_ms=10_000, feature_updates=[update], validate_only=is_dry), 1)

    # Configs

    def _resource(self) -> tuple[int, str]:
        return self._random.choice(
            [(2, "a"), (2, "b"), (2, "unknown"), (2, ""), (4, ""), (4, "1"), (4, "9"), (4, "x"), (16, "metrics"),
             (32, "g"), (8, "1")]
        )  # fmt: skip

    def _setting(self, kind: int) -> tuple[str, str]:
        random = self._random
        by_kind = {
            2: [
                ("retention.ms", ["1000", "-1", "-2", "x"]), ("cleanup.policy", ["compact", "delete", "both"]),
                ("min.insync.replicas", ["1", "2", "0"]), ("unknown.key", ["1"]),
                ("compression.type", ["zstd", "uncompressed", "rar"]),
                ("leader.replication.throttled.replicas", ["0:1,1:2", "*", "x"]),
            ],
            4: [("log.retention.ms", ["1000", "-1"]), ("unclean.leader.election.enable", ["true", "false"]),
                ("min.insync.replicas", ["1", "2"])],
            16: [("interval.ms", ["100", "1000", "1"]), ("metrics", ["a,b", ""]), ("match", ["client_id=x", "="])],
            32: [("consumer.session.timeout.ms", ["45000", "1"]), ("share.auto.offset.reset", ["earliest", "never"])],
        }  # fmt: skip
        key, texts = random.choice(by_kind.get(kind, by_kind[2]))
        return key, random.choice(texts)

    def _configure(self) -> Step:
        kind = m.IncrementalAlterConfigsRequest
        number, name = self._resource()
        key, text = self._setting(number)
        operation = self._random.choice([0, 0, 0, 1, 2, 3])  # others depose Kafka's controller
        change = kind.AlterableConfig(name=key, config_operation=operation, value=text)
        resource = kind.AlterConfigsResource(resource_type=number, resource_name=name, configs=[change])
        return Step(kind(resources=[resource], validate_only=self._random.random() < 0.15), 1)

    def _replace_configs(self) -> Step:
        kind = m.AlterConfigsRequest
        number, name = self._resource()
        chosen = dict(self._setting(number) for _ in range(self._random.randint(0, 2)))
        configs = [kind.AlterableConfig(name=key, value=text) for key, text in chosen.items()]
        resource = kind.AlterConfigsResource(resource_type=number, resource_name=name, configs=configs)
        return Step(kind(resources=[resource]), 2)

    # Topics

    def _create(self) -> Step:
        kind, random = m.CreateTopicsRequest, self._random
        replicas = [random.sample(BROKERS, random.randint(1, 3)) for _ in range(random.randint(0, 3))]
        numbers = random.choice([range(len(replicas)), range(1, len(replicas) + 1)])
        configs = [self._setting(2)] if random.random() < 0.4 else []
        topic = kind.CreatableTopic(
            name=random.choice(["a", "b", "a", "b", "a.b", "a_b", "", "..", "x" * 250, "a b"]),
            num_partitions=random.choice([-1, -1, -1, 3]),
            replication_factor=random.choice([-1, -1, -1, 2]),
            assignments=[
                kind.CreatableReplicaAssignment(
                    partition_index=number, broker_ids=random.choice([one, one, one * 2, []])
                )
                for number, one in zip(numbers, replicas, strict=True)
            ],
            configs=[kind.CreatableTopicConfig(name=key, value=text) for key, text in configs],
        )
        if not replicas:  # without assignments the replicas are random; that is another test's matter
            topic.num_partitions, topic.replication_factor = random.choice([(0, 1), (-2, 1), (1, 9), (1, 0), (1, -3)])
        is_dry = random.random() < 0.1
        return Step(kind(topics=[topic], timeout_ms=10_000, validate_only=is_dry), 7, is_ordered=True)

    def _grow(self) -> Step:
        kind, random = m.CreatePartitionsRequest, self._random
        replicas = kind.CreatePartitionsAssignment(broker_ids=random.sample(BROKERS, random.randint(1, 3)))
        count = random.randint(0, 6)
        topic = kind.CreatePartitionsTopic(name=random.choice(TOPICS), count=count, assignments=[replicas])
        return Step(kind(topics=[topic], timeout_ms=10_000, validate_only=random.random() < 0.1), 3, is_ordered=True)

    def _delete(self) -> Step:
        state = m.DeleteTopicsRequest.DeleteTopicState(name=self._random.choice(TOPICS))
        return Step(m.DeleteTopicsRequest(topics=[state], timeout_ms=10_000), 6, is_ordered=True)


def plain(value: Any, key: str = "") -> Any:
    """Return a response without the values in which two controllers may differ."""
    if isinstance(value, dict):
        return {name: plain(one, name) for name, one in value.items() if name not in ("throttleTimeMs", "topicId")}
    if isinstance(value, list):
        parts = [plain(one) for one in value]
        return sorted(parts, key=repr) if all(isinstance(one, dict) for one in parts) else parts
    if key == "errorMessage":
        return bool(value)
    return value


def ask(side: Side, step: Step) -> tuple[Any, list[str]]:
    response = side.ask(step.request, step.version)
    records = side.new_records_in_order()
    return plain(to_dict(response, step.version)), records if step.is_ordered else sorted(records)


# Brokers


def register(side: Side, cluster_id: str, broker: int, rack: str | None = None) -> None:
    kind = m.BrokerRegistrationRequest
    response = side.ask(
        kind(
            broker_id=broker,
            cluster_id=cluster_id,
            incarnation_id=bytes([broker]) * 16,
            listeners=[kind.Listener(name="PLAINTEXT", host="h", port=9000 + broker)],
            features=[
                kind.Feature(name=name, min_supported_version=one.low, max_supported_version=one.high)
                for name, one in SUPPORTED.items()
            ],
            rack=rack,
            log_dirs=[bytes([100 + broker]) * 16],
        ),
        4,
    )
    assert not response.error_code, response
    side.epochs[broker] = response.broker_epoch


def heartbeat(side: Side, broker: int) -> Any:
    request = m.BrokerHeartbeatRequest(
        broker_id=broker, broker_epoch=side.epochs[broker], current_metadata_offset=1_000_000
    )
    return side.ask(request, 1)


class Pair:
    """Kafka's controller and ours, with the same registered brokers."""

    def __init__(self, controllers: KafkaControllers, settings: dict[str, str]) -> None:
        self._controllers = controllers
        self._settings = settings
        self._files = MemoryFiles()
        self._starts = 1
        self.theirs = KafkaSide(controllers.nodes[0].port)
        self.ours = OurSide(PlayedController(settings, self._files, cluster_id=controllers.cluster_id))

    @property
    def both(self) -> tuple[KafkaSide, OurSide]:
        return self.theirs, self.ours

    def register_all(self, racks: dict[int, str] | None = None) -> None:
        for side in self.both:
            side.new_records()
            for broker in BROKERS:
                register(side, self._controllers.cluster_id, broker, (racks or {}).get(broker))
                heartbeat(side, broker)
        assert self.theirs.new_records() == self.ours.new_records()

    def _is_active(self) -> bool:
        try:
            return bool(heartbeat(self.theirs, 1).error_code != ErrorCode.NOT_CONTROLLER)
        except ConnectionError:
            return False

    def let_pass(self, seconds: float) -> None:
        """Let time pass at our controller."""
        self.ours.controller.tick(int(seconds * 1_000))

    def restart(self, *, crashes: bool) -> None:
        node, controller = self._controllers.nodes[0], self.ours.controller
        node.crash() if crashes else node.stop()
        node.start()
        controller.node.abandon() if crashes else controller.node.close(controller.now_ms)
        self._starts += 1
        self.ours.controller = PlayedController(
            self._settings, self._files, now_ms=controller.now_ms + 10_000, first_id=self._starts * 1_000_000
        )
        eventually(self._is_active, "Kafka's controller is active")
        for broker in BROKERS:
            assert plain(to_dict(heartbeat(self.theirs, broker), 1)) == plain(to_dict(heartbeat(self.ours, broker), 1))
        assert self.theirs.new_records() == self.ours.new_records()


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_random_administration_has_the_same_answers_and_records(
    kafka: KafkaInstallation, tmp_path: Path, seed: int
) -> None:
    with KafkaControllers(kafka, tmp_path, properties=SETTINGS, is_formatted_here=True) as controllers:
        pair = Pair(controllers, SETTINGS)
        pair.register_all()
        administrator = Administrator(seed)
        asked: list[str] = []
        written = 0
        for number in range(1_200):
            if number % 300 == 299:
                pair.restart(crashes=number % 600 == 299)
            step = administrator.step()
            asked.append(f"{number}: {step.request!r}")
            expected, actual = (ask(side, step) for side in pair.both)
            if SERVER_ERROR in json.dumps(expected[0]):
                assert expected[1] == actual[1] == []  # Kafka fails at some invalid values, where ours names the error
                continue
            assert actual == expected, "\n".join([*asked[-3:], f"Kafka: {expected}", f"ours:  {actual}"])
            written += len(actual[1])
        assert written > 200


@pytest.mark.parametrize("racks", [{}, {1: "x", 2: "x", 3: "y", 4: "z"}], ids=["no racks", "racks"])
def test_replicas_are_spread_alike(kafka: KafkaInstallation, tmp_path: Path, racks: dict[int, str]) -> None:
    """The first broker is random in both, so the numbers of leaders and replicas of all brokers are compared."""
    with KafkaControllers(kafka, tmp_path, properties=SETTINGS, is_formatted_here=True) as controllers:
        pair = Pair(controllers, SETTINGS)
        pair.register_all(racks)
        kind = m.CreateTopicsRequest
        for count in (1, 2, 4, 7, 12, 24):
            for factor in (1, 2, 3, 4, 5):
                topic = kind.CreatableTopic(name=f"t-{count}-{factor}", num_partitions=count, replication_factor=factor)
                request = kind(topics=[topic], timeout_ms=10_000)
                shapes = []
                for side in pair.both:
                    response = side.ask(request, 7)
                    shapes.append((plain(to_dict(response, 7)), shape(side.new_records_in_order(), racks)))
                assert shapes[0] == shapes[1]


def shape(records: list[str], racks: dict[int, str]) -> Any:
    """Return what does not depend on the random first broker."""
    partitions = [body for name, body in map(json.loads, records) if name == "PartitionRecord"]
    leaders = Counter(one["leader"] for one in partitions)
    return {
        "kinds": [json.loads(one)[0] for one in records],
        "sizes": [len(one["replicas"]) for one in partitions],
        "distinct": [len(set(one["replicas"])) for one in partitions],
        "racks": sorted(len({racks.get(broker) for broker in one["replicas"]}) for one in partitions),
        "leads": [one["leader"] == one["replicas"][0] for one in partitions],
        "in sync": [one["isr"] == one["replicas"] for one in partitions],
        "leaders": None if racks else sorted(leaders.values()),  # racks of different sizes lead by chance
        "numbers": [one["partitionId"] for one in partitions],
    }


def test_the_same_brokers_are_fenced_when_their_sessions_expire(kafka: KafkaInstallation, tmp_path: Path) -> None:
    settings = {**SETTINGS, "broker.session.timeout.ms": str(SESSION_MS)}
    random = Random(7)
    with KafkaControllers(kafka, tmp_path, properties=settings, is_formatted_here=True) as controllers:
        pair = Pair(controllers, settings)
        pair.register_all()
        kind = m.CreateTopicsRequest
        for turn in range(6):
            for side in pair.both:
                for broker in BROKERS:
                    heartbeat(side, broker)
            assignments = [
                kind.CreatableReplicaAssignment(
                    partition_index=number, broker_ids=random.sample(BROKERS, random.randint(1, 3))
                )
                for number in range(5)
            ]
            configs = [kind.CreatableTopicConfig(name="min.insync.replicas", value=random.choice("12"))]
            topic = kind.CreatableTopic(name=f"t{turn}", assignments=assignments, configs=configs)
            topic.num_partitions = topic.replication_factor = -1
            for side in pair.both:
                side.ask(kind(topics=[topic], timeout_ms=10_000), 7)
            assert pair.theirs.new_records() == pair.ours.new_records()
            silent = random.sample(BROKERS, random.randint(1, 3))
            expected, actual = fenced(pair.theirs, silent, time.sleep), fenced(pair.ours, silent, pair.let_pass)
            assert actual == expected
            assert sum('"fenced": 1' in one for one in actual) == len(silent)


def fenced(side: Side, silent: list[int], wait: Callable[[float], None]) -> list[str]:
    """Let some brokers be silent until their sessions have expired. Return the records."""
    records: list[str] = []
    for _ in range(int(3 * SESSION_MS / PAUSE_MS)):
        for broker in BROKERS:
            if broker not in silent:
                heartbeat(side, broker)
        wait(PAUSE_MS / 1_000)
        records += side.new_records()
    return sorted(records)
