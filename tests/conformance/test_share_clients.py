"""Java's KafkaShareConsumer and the console share consumer at Tailrace: every record is processed although consumers
and the broker crash; rejected records are not delivered again.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from tailrace.protocol.messages import IncrementalAlterConfigsRequest
from tests.support.kafka_install import KafkaInstallation
from tests.support.raw_client import RawClient
from tests.support.share_workers import ShareWorkers
from tests.support.tailrace_process import TailraceProcess

pytestmark = pytest.mark.kafka

CONSOLE = "org.apache.kafka.tools.consumer.ConsoleShareConsumer"
SETTINGS = {
    "group.share.record.lock.duration.ms": "2000",
    "group.share.min.record.lock.duration.ms": "1000",
    "group.share.heartbeat.interval.ms": "500",
    "group.share.min.heartbeat.interval.ms": "100",
    "group.share.assignment.interval.ms": "0",
    "share.coordinator.state.topic.num.partitions": "2",
    "offsets.topic.num.partitions": "1",
}
_GROUP = 32


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[TailraceProcess]:
    options = [part for name, text in SETTINGS.items() for part in ("-o", f"{name}={text}")]
    with TailraceProcess(tmp_path / "data", *options) as started:
        yield started


def prepare(broker: TailraceProcess, topic: str, group: str, partitions: int, *, lock_ms: int = 2_000) -> None:
    """Create a topic, and a group that begins with its first record."""
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    admin.create_topics([NewTopic(topic, partitions, 1)])[topic].result()
    settings = {"share.auto.offset.reset": "earliest", "share.record.lock.duration.ms": str(lock_ms)}
    configs = [
        IncrementalAlterConfigsRequest.AlterableConfig(name=name, config_operation=0, value=text)
        for name, text in settings.items()
    ]
    resource = IncrementalAlterConfigsRequest.AlterConfigsResource(
        resource_type=_GROUP, resource_name=group, configs=configs
    )
    with RawClient(broker.bootstrap) as client:
        assert client.ask(IncrementalAlterConfigsRequest(resources=[resource]), 1).responses[0].error_code == 0


def produce(broker: TailraceProcess, topic: str, values: list[str]) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap, "linger.ms": 5})
    for value in values:
        producer.produce(topic, value.encode())
    assert producer.flush(60) == 0


def test_two_consumers_accept_release_and_reject_all_records_of_a_topic(broker: TailraceProcess) -> None:
    # a long lock, so that no record is delivered again because the machine is slow
    prepare(broker, "orders", "workers", 2, lock_ms=60_000)
    kinds = ["accept", "reject", "release", "renew"]
    values = [f"{kinds[number % 4]}-{number}" for number in range(80)]
    produce(broker, "orders", values)
    with ShareWorkers(broker.bootstrap, "orders", "workers") as workers:
        members = [workers.start(name, "max.poll.records=7") for name in ("one", "other")]
        fates = {f"{'REJECT' if value.startswith('reject') else 'ACCEPT'} {value}".lower() for value in values}
        workers.wait_for(lambda output: fates <= {line.lower() for line in output})
        for member in members:
            member.stop()
        output = [line.lower() for line in workers.output()]
    assert not [line for line in output if line.startswith("failed")]
    for value in values:
        assert output.count(f"got 1 {value}") == 1
        assert output.count(f"got 2 {value}") == (1 if value.startswith("release") else 0)


@pytest.mark.slow
def test_no_record_is_lost_when_a_consumer_and_the_broker_crash(broker: TailraceProcess) -> None:
    prepare(broker, "orders", "workers", 2)
    values = [f"{'hold' if number < 20 else 'v'}-{number}" for number in range(400)]
    produce(broker, "orders", values[:200])

    def wait_for_accepted(workers: ShareWorkers, wanted: list[str]) -> None:
        workers.wait_for(lambda output: {f"accept {value}" for value in wanted} <= {line.lower() for line in output})

    with ShareWorkers(broker.bootstrap, "orders", "workers") as workers:
        victims = [workers.start(f"victim-{number}", "max.poll.records=10") for number in range(2)]
        workers.wait_for(lambda output: any(line.startswith("got 1 hold") for line in output))
        victims[0].kill()
        survivors = [workers.start(name, "max.poll.records=50") for name in ("a", "b")]
        broker.kill()
        broker.start()
        victims[1].kill()
        wait_for_accepted(workers, values[:200])
        produce(broker, "orders", values[200:300])
        wait_for_accepted(workers, values[200:300])
        assert broker.stop() == 0
        broker.start()
        produce(broker, "orders", values[300:])
        wait_for_accepted(workers, values)
        survivors[0].kill()
        survivors[1].stop()


@pytest.mark.slow
def test_the_console_share_consumer_reads_a_topic(broker: TailraceProcess, kafka: KafkaInstallation) -> None:
    prepare(broker, "orders", "workers", 1)
    produce(broker, "orders", ["first", "second", "third"])
    common = ("--bootstrap-server", broker.bootstrap, "--topic", "orders", "--group", "workers")
    reported = kafka.tool(CONSOLE, *common, "--max-messages", "1", "--timeout-ms", "30000", "--reject")
    assert reported.split() == ["first"]
    reported = kafka.tool(CONSOLE, *common, "--max-messages", "2", "--timeout-ms", "30000")
    assert reported.split() == ["second", "third"]
    reported = kafka.tool(CONSOLE, *common, "--timeout-ms", "3000", check=False)
    assert reported.split() == []
