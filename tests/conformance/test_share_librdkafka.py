"""librdkafka's share consumers at Tailrace: implicit acceptance, and explicit acknowledgement types."""

from __future__ import annotations

import time
from collections import Counter

from confluent_kafka import AcknowledgeType, ShareConsumer

from tests.conformance.test_share_clients import broker, prepare, produce
from tests.support.tailrace_process import TailraceProcess

__all__ = ["broker"]  # the fixture

PATIENCE_S = 60


def consumer(started: TailraceProcess, group: str, mode: str) -> ShareConsumer:
    settings = {"bootstrap.servers": started.bootstrap, "group.id": group, "share.acknowledgement.mode": mode}
    return ShareConsumer(settings)


def test_two_consumers_share_a_partition(broker: TailraceProcess) -> None:
    prepare(broker, "tasks", "sharing", 1, lock_ms=60_000)
    values = [f"task {number}".encode() for number in range(500)]
    members = [consumer(broker, "sharing", "implicit") for _ in range(2)]
    read: Counter[bytes] = Counter()
    try:
        for member in members:
            member.subscribe(["tasks"])
        produce(broker, "tasks", [value.decode() for value in values])
        deadline = time.monotonic() + PATIENCE_S
        while read.total() < len(values):
            assert time.monotonic() < deadline, f"{read.total()} of {len(values)} were read"
            for member in members:
                for message in member.poll(0.5):
                    assert message.error() is None, message.error()
                    read[message.value()] += 1
    finally:
        for member in members:
            member.close()
    assert read == Counter(values)


def test_released_records_are_delivered_again_and_rejected_ones_are_not(broker: TailraceProcess) -> None:
    prepare(broker, "choices", "choosing", 1, lock_ms=60_000)
    fates = {"accept": AcknowledgeType.ACCEPT, "release": AcknowledgeType.RELEASE, "reject": AcknowledgeType.REJECT}
    values = [f"{name} {number}" for number in range(10) for name in fates]
    produce(broker, "choices", values)
    delivered: Counter[str] = Counter()
    expected = Counter({value: 2 if value.startswith("release") else 1 for value in values})
    member = consumer(broker, "choosing", "explicit")
    try:
        member.subscribe(["choices"])
        deadline = time.monotonic() + PATIENCE_S
        while delivered.total() < expected.total():
            assert time.monotonic() < deadline, delivered
            for message in member.poll(0.5):
                assert message.error() is None, message.error()
                value = message.value().decode()
                delivered[value] += 1
                fate = fates[value.split()[0]] if delivered[value] == 1 else AcknowledgeType.ACCEPT
                member.acknowledge(message, fate)
            assert not any(member.commit_sync(30.0).values())
        assert not list(member.poll(1.0))  # no record is left
    finally:
        member.close()
    assert delivered == expected
