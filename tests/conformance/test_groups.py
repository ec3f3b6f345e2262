"""Consumer groups with real clients: members join, leave, crash and stall.

Every record is read, every partition has one owner at a time, and no commit of a former owner is accepted.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.confluent import create_topic, produce
from tests.support.group_watch import GroupWatch
from tests.support.tailrace_process import TailraceProcess

PARTITIONS = 4
PER_PARTITION = 40
SESSION_MS = 2_000
OPTIONS = {
    "group.min.session.timeout.ms": "500",
    "group.initial.rebalance.delay.ms": "200",
    "offsets.topic.num.partitions": "3",
    "group.consumer.session.timeout.ms": "2000",
    "group.consumer.min.session.timeout.ms": "1000",
    "group.consumer.heartbeat.interval.ms": "400",
    "group.consumer.min.heartbeat.interval.ms": "100",
}


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TailraceProcess]:
    options = [part for name, text in OPTIONS.items() for part in ("-o", f"{name}={text}")]
    with TailraceProcess(tmp_path_factory.mktemp("groups") / "data", *options) as process:
        yield process
        assert process.stop() == 0
    assert process.errors == ""


def fill(broker: TailraceProcess, topic: str, count: int = PER_PARTITION) -> None:
    for partition in range(PARTITIONS):
        produce(broker.bootstrap, topic, partition, [str(number).encode() for number in range(count)])


def story(broker: TailraceProcess, topic: str, clients: list[str], strategy: str) -> None:
    """Run three members: one crashes, one stalls longer than its session, one leaves. Two more join."""
    create_topic(broker.bootstrap, topic, PARTITIONS)
    watch = GroupWatch(broker.bootstrap, f"group of {topic}", topic, strategy=strategy, session_ms=SESSION_MS)
    everything = set(range(PARTITIONS))

    def is_shared_by(*names: int) -> bool:
        shares = [watch.members[name].owned for name in names]
        return all(shares) and set().union(*shares) == everything and sum(map(len, shares)) == PARTITIONS

    try:
        first, second = watch.start(clients[0]), watch.start(clients[1])
        watch.wait_until(lambda: is_shared_by(0, 1))
        fill(broker, topic)
        watch.wait_until(lambda: bool(first.of("committed") and second.of("committed")))
        third = watch.start(clients[2])
        watch.wait_until(lambda: is_shared_by(0, 1, 2))
        first.kill()
        watch.wait_until(lambda: is_shared_by(1, 2))
        assert watch.overlaps() == [], watch.story()
        fill(broker, topic)
        second.stall()
        watch.wait_until(lambda: third.owned == everything)
        watch.start(clients[0])
        watch.wait_until(lambda: is_shared_by(2, 3))
        second.go_on()
        watch.wait_until(lambda: is_shared_by(1, 2, 3))
        third.leave()
        watch.wait_until(lambda: is_shared_by(1, 3))
        fill(broker, topic)
        expected = {(partition, offset) for partition in range(PARTITIONS) for offset in range(3 * PER_PARTITION)}
        watch.wait_until(lambda: set(watch.read()) == expected)
        for member in watch.members:
            if member.is_running:
                member.leave()
        assert watch.steps_back() == [], watch.story()
        assert watch.overlaps(tolerated=frozenset({second.name})) == [], watch.story()
    finally:
        watch.end()


def test_three_different_clients_share_one_group(broker: TailraceProcess) -> None:
    story(broker, "mixed", ["librdkafka", "kafka-python", "aiokafka"], "range")


@pytest.mark.slow
@pytest.mark.parametrize("client", ["librdkafka", "franz-go"])
def test_clients_share_a_group_with_the_cooperative_strategy(broker: TailraceProcess, client: str) -> None:
    story(broker, f"cooperative-{client}", [client] * 3, "cooperative-sticky")


@pytest.mark.slow
def test_franz_go_shares_a_group_with_other_clients(broker: TailraceProcess) -> None:
    story(broker, "mixed-with-franz-go", ["franz-go", "librdkafka", "kafka-python"], "range")


@pytest.mark.slow
@pytest.mark.parametrize("client", ["librdkafka", "kafka-python", "aiokafka", "franz-go"])
def test_members_of_one_client_share_a_group(broker: TailraceProcess, client: str) -> None:
    story(broker, f"only-{client}", [client] * 3, "range")


def test_members_share_a_group_of_the_consumer_protocol(broker: TailraceProcess) -> None:
    story(broker, "consumer-protocol", ["librdkafka-consumer"] * 3, "range")


@pytest.mark.slow
def test_a_group_changes_to_the_consumer_protocol_and_back(broker: TailraceProcess) -> None:
    """One member after the other, while records arrive: each record is read, and each partition has one owner at a
    time.
    """
    topic = "rolled-over"
    create_topic(broker.bootstrap, topic, PARTITIONS)
    watch = GroupWatch(broker.bootstrap, "rolled over", topic, strategy="range", session_ms=SESSION_MS)

    def everything_is_owned() -> bool:
        shares = [member.owned for member in watch.members if member.is_running]
        return all(shares) and sum(map(len, shares)) == PARTITIONS

    try:
        for client in ("librdkafka", "librdkafka", "librdkafka-consumer", "librdkafka-consumer", "librdkafka"):
            watch.start(client)
            running = [member for member in watch.members if member.is_running]
            if len(running) > 2:
                running[0].leave()
            watch.wait_until(everything_is_owned)
            fill(broker, topic, 10)
        expected = {(partition, offset) for partition in range(PARTITIONS) for offset in range(50)}
        watch.wait_until(lambda: set(watch.read()) == expected)
        assert watch.overlaps() == [], watch.story()
        assert watch.steps_back() == [], watch.story()
    finally:
        watch.end()
