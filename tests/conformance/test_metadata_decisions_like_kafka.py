"""Replica placement and partition changes of many brokers, compared with Kafka's own classes."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from random import Random
from typing import Any

import pytest

import tests.unit.metadata
from tailrace.metadata.decisions.replicas.partition_change import Election, PartitionChange
from tailrace.metadata.decisions.replicas.replica_placement import UsableBroker, place_replicas
from tailrace.metadata.image.features import record_versions
from tailrace.metadata.image.partition_registration import PartitionRegistration
from tailrace.model.errors import KafkaError
from tailrace.protocol.json_form import to_dict
from tests.support.kafka_install import KafkaInstallation

pytestmark = pytest.mark.kafka

ORACLE = Path(tests.unit.metadata.__file__).with_name("ControllerOracle.java")


def ask_kafka(kafka: KafkaInstallation, questions: list[dict[str, Any]]) -> list[Any]:
    lines = "".join(json.dumps(one) + "\n" for one in questions)
    done = subprocess.run(kafka.command(str(ORACLE)), input=lines, capture_output=True, text=True, check=False)
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(answers) == len(questions), done.stderr[-3000:]
    return answers


class JavaRandom:
    """The nextInt(n) of java.util.Random."""

    def __init__(self, seed: int) -> None:
        self.seed = (seed ^ 0x5DEECE66D) & ((1 << 48) - 1)

    def _bits(self) -> int:
        self.seed = (self.seed * 0x5DEECE66D + 0xB) & ((1 << 48) - 1)
        return self.seed >> 17

    def next_int(self, bound: int) -> int:
        bits = self._bits()
        if bound & (bound - 1) == 0:
            return (bound * bits) >> 31
        while bits - bits % bound + (bound - 1) >= 1 << 31:
            bits = self._bits()
        return bits % bound


def placements(count: int) -> list[dict[str, Any]]:
    dice = Random(5)
    cases = []
    for seed in range(count):
        size = dice.randint(1, 9)
        ids = dice.sample(range(20), size)
        # Kafka draws a number for each rack in the order of a hash table, which is the order of these names.
        racks = sorted(dice.choice(["", "a", "b", "c"][: 1 + seed % 4]) for _ in range(size))
        fenced = [dice.random() < 0.25 for _ in range(size)]
        cases.append(
            {
                "seed": seed,
                "partitions": dice.randint(1, 25),
                "replicas": dice.randint(0, size + 1),
                "brokers": [[one, rack or None, out] for one, rack, out in zip(ids, racks, fenced, strict=True)],
            }
        )
    return cases


def test_replicas_are_placed_on_the_same_brokers_as_in_kafka(kafka: KafkaInstallation) -> None:
    cases = placements(300)
    for case, expected in zip(cases, ask_kafka(kafka, [{"place": one} for one in cases]), strict=True):
        dice = JavaRandom(case["seed"])
        brokers = [UsableBroker(*one) for one in case["brokers"]]
        try:
            actual: Any = list(place_replicas(brokers, case["partitions"], case["replicas"], dice.next_int))
        except KafkaError:
            actual = "InvalidReplicationFactorException"
        assert actual == expected, case


def changes(count: int) -> list[dict[str, Any]]:
    dice = Random(6)
    brokers = [1, 2, 3, 4, 5]

    def some(among: list[int], least: int = 0) -> list[int]:
        return dice.sample(among, dice.randint(min(least, len(among)), len(among)))

    cases = []
    for _ in range(count):
        replicas = some(brokers[:4], 1)
        isr = some(replicas) if dice.random() < 0.8 else []
        elr = some([one for one in replicas if one not in isr]) if dice.random() < 0.4 else []
        adding = some(replicas) if dice.random() < 0.15 else []
        removing = some([one for one in replicas if one not in adding]) if dice.random() < 0.15 else []
        case: dict[str, Any] = {
            "partition": {
                "replicas": replicas,
                "isr": isr,
                "leader": dice.choice([*isr, -1]),
                "recovery": dice.choice([0, 0, 0, 1]),
                "adding": adding,
                "removing": removing,
                "elr": elr,
                "last_known_elr": dice.choice([[], [], [dice.choice(replicas)], replicas[:2]]),
            },
            "acceptable": some(replicas),
            "version": dice.choice([30, 30, 30, 22, 17, 11]),
            "min_isr": dice.randint(1, 3),
            "elr": dice.random() < 0.7,
            "election": dice.choice(["online", "preferred", "unclean"]),
        }
        if case["version"] < 23:
            case["elr"] = False
            case["partition"] |= {"elr": [], "last_known_elr": []}
        if dice.random() < 0.6:
            case["target_isr"] = some(replicas)
        if dice.random() < 0.3:
            target = some(replicas, 1) + some([5])
            case["target_replicas"] = target
            case["target_adding"] = sorted(set(target) - set(replicas))
            case["target_removing"] = sorted(set(replicas) - set(target))
        if dice.random() < 0.2:
            case["stopped_uncleanly"] = [dice.choice(replicas)]
        cases.append(case)
    return cases


def directory(high: int, low: int) -> bytes:
    return (high << 64 | low).to_bytes(16, "big")


def our_change(case: dict[str, Any]) -> Any:
    before = case["partition"]
    partition = PartitionRegistration(
        replicas=tuple(before["replicas"]),
        directories=tuple(directory(2, one) for one in before["replicas"]),
        isr=tuple(before["isr"]),
        leader=before["leader"],
        leader_epoch=5,
        partition_epoch=6,
        leader_recovery_state=before["recovery"],
        removing_replicas=tuple(before["removing"]),
        adding_replicas=tuple(before["adding"]),
        elr=tuple(before["elr"]),
        last_known_elr=tuple(before["last_known_elr"]),
    )
    versions = record_versions(case["version"])
    change = PartitionChange(
        partition=partition,
        topic_id=directory(7, 7),
        number=3,
        is_acceptable=lambda one: one in case["acceptable"],
        default_directory=lambda one: directory(1, one),
        versions=versions,
        min_isr=case["min_isr"],
        elr_enabled=case["elr"],
        election=Election(case["election"]),
        isr=case.get("target_isr"),
        replicas=case.get("target_replicas"),
        adding=case.get("target_adding"),
        removing=case.get("target_removing"),
        stopped_uncleanly=case.get("stopped_uncleanly", ()),
    )
    record = change.build()
    return None if record is None else to_dict(record, versions.partition)


def test_partition_changes_are_the_same_as_in_kafka(kafka: KafkaInstallation) -> None:
    cases = changes(3000)
    answers = ask_kafka(kafka, [{"change": one} for one in cases])
    assert sum(one is not None for one in answers) > 1000
    for case, expected in zip(cases, answers, strict=True):
        assert our_change(case) == expected, case
