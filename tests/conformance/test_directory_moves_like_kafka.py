"""Moving a partition between log directories: the same requests to Kafka and to Tailrace, with the same responses and
files.

Kafka and Tailrace also open each other's directories in the middle of a move, and complete the move.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Protocol

import pytest

from tailrace.protocol import messages as m
from tests.support.api_twins import KafkaSide
from tests.support.batches import batch
from tests.support.kafka_broker import KafkaBroker
from tests.support.log_oracle import LogOracle
from tests.support.tailrace_process import TailraceProcess

pytestmark = pytest.mark.kafka
TOOLS = "org.apache.kafka.tools"
PATIENCE_S = 30.0
VALUES = [bytes([number]) * 100_000 for number in range(40)]  # four segments of a megabyte
RATE = "replica.alter.log.dirs.io.max.bytes.per.second"


class Running(Protocol):
    port: int


class Side:
    """One broker with two directories."""

    def __init__(self, broker: Running, root: Path) -> None:
        self.wire = KafkaSide(broker.port)
        self.root = root
        self.first, self.second = str(root / "first"), str(root / "second")

    def create(self, topic: str, **configs: str) -> None:
        wanted = m.CreateTopicsRequest.CreatableTopic(name=topic, num_partitions=1, replication_factor=1)
        wanted.configs = [
            m.CreateTopicsRequest.CreatableTopicConfig(name=name.replace("_", "."), value=text)
            for name, text in configs.items()
        ]
        (made,) = self.wire.ask(m.CreateTopicsRequest(topics=[wanted], timeout_ms=10_000), 5).topics
        assert made.error_code == 0, made.error_message
        self._until(lambda: bool(self.places(topic)))

    def order(self, path: str, *topics: str, partition: int = 0, version: int = 2) -> list[tuple[str, int, int]]:
        request = m.AlterReplicaLogDirsRequest()
        wanted = [request.AlterReplicaLogDirTopic(name=topic, partitions=[partition]) for topic in topics]
        request.dirs = [request.AlterReplicaLogDir(path=path, topics=wanted)]
        answer = self.wire.ask(request, version)
        return sorted(
            (topic.topic_name, one.partition_index, one.error_code)
            for topic in answer.results
            for one in topic.partitions
        )

    def produce(self, topic: str, *values: bytes) -> None:
        for value in values:
            request = m.ProduceRequest(acks=-1, timeout_ms=30_000)
            data = request.PartitionProduceData(index=0, records=bytes(batch(value, timestamp=1_700_000_000_000)))
            request.topic_data = [request.TopicProduceData(name=topic, partition_data=[data])]
            (answer,) = self.wire.ask(request, 9).responses[0].partition_responses
            assert answer.error_code == 0

    def fetch(self, topic: str, offset: int) -> bytes:
        request = m.FetchRequest(replica_id=-1, max_wait_ms=0, min_bytes=0, max_bytes=50_000_000)
        wanted = request.FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=50_000_000)
        request.topics = [request.FetchTopic(topic=topic, partitions=[wanted])]
        (answer,) = self.wire.ask(request, 12).responses[0].partitions
        assert answer.error_code == 0
        return bytes(answer.records or b"")

    def everything(self, topic: str, count: int) -> bytes:
        """Return every record; one fetch returns records of one segment at most."""
        found, offset = b"", 0
        while offset < count:
            records = self.fetch(topic, offset)
            position = 0
            while position < len(records):
                size = int.from_bytes(records[position + 8 : position + 12], "big") + 12
                offset = int.from_bytes(records[position : position + 8], "big") + 1
                position += size
            found += records
        return found

    def places(self, topic: str) -> list[tuple[str, int, int, bool]]:
        """Return (directory, size, lag, is it the future replica) of a topic's partition."""
        answer = self.wire.ask(m.DescribeLogDirsRequest(topics=None), 4)
        return sorted(
            (Path(one.log_dir).name, partition.partition_size, partition.offset_lag, partition.is_future_key)
            for one in answer.results
            for reported in one.topics
            if reported.name == topic
            for partition in reported.partitions
        )

    def limit(self, rate: str | None) -> None:
        request = m.IncrementalAlterConfigsRequest()
        change = request.AlterableConfig(name=RATE, value=rate, config_operation=0 if rate else 1)
        request.resources = [request.AlterConfigsResource(resource_type=4, resource_name="1", configs=[change])]
        assert self.wire.ask(request, 1).responses[0].error_code == 0

    def until_moved(self, topic: str, where: str) -> None:
        self._until(lambda: [place[0] for place in self.places(topic)] == [where])

    def _until(self, holds: Callable[[], bool]) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not holds():
            assert time.monotonic() < deadline, "the condition was not met in time"
            time.sleep(0.05)

    def files(self, topic: str) -> dict[str, int | bytes]:
        """Return the files of a partition in both directories: names, sizes of logs, bytes of small files."""
        found: dict[str, int | bytes] = {}
        for place in ("first", "second"):
            for folder in (self.root / place).glob(f"{topic}-0*"):
                name = re.sub(r"\.[0-9a-f]{32}-", ".ID-", folder.name)
                for file in folder.iterdir():
                    known: int | bytes = 0
                    if file.suffix == ".log":
                        known = file.stat().st_size
                    elif file.name == "leader-epoch-checkpoint":
                        known = file.read_bytes()
                    found[f"{place}/{name}/{file.name}"] = known
        return found


def kafka_on(make: Callable[..., KafkaBroker], root: Path, **more: Any) -> KafkaBroker:
    dirs = f"{root / 'first'},{root / 'second'}"
    return make(root / "kafka", properties={"log.dirs": dirs, "log.cleaner.enable": "false"}, **more)


def ours_on(root: Path, port: int | None = None) -> TailraceProcess:
    return TailraceProcess(
        root / "first", "--data", str(root / "second"), "-o", "auto.create.topics.enable=false", port=port
    )


@pytest.fixture
def sides(kafka_broker: Callable[..., KafkaBroker], tmp_path: Path) -> Iterator[list[Side]]:
    kafka = kafka_on(kafka_broker, tmp_path / "theirs")
    kafka.start()
    with ours_on(tmp_path / "ours") as ours:
        yield [Side(kafka, tmp_path / "theirs"), Side(ours, tmp_path / "ours")]


def test_requests_to_move_get_the_same_responses_and_leave_the_same_files(
    sides: list[Side], log_oracle: LogOracle, tmp_path: Path
) -> None:
    answers: list[list[Any]] = []
    for side in sides:
        responses: list[Any] = []
        for version in (1, 2):
            responses.append(side.order("/nowhere", "orders", version=version))
            responses.append(side.order(side.first, "orders", version=version))
        side.create("orders", segment_bytes="1048576", file_delete_delay_ms="60000")
        # the directory that was chosen before the topic existed
        responses.append([place[0] for place in side.places("orders")])
        responses.append(side.order(side.first, "orders"))
        responses.append(side.order(side.second, "orders", partition=7))
        responses.append(side.order(side.second, "x" * 249))
        side.produce("orders", *VALUES)
        responses.append(side.files("orders").keys())
        side.limit("1")
        responses.append(side.order(side.second, "orders", "nowhere"))
        responses.append(side.order(side.second, "orders"))
        responses.append([place[3] for place in side.places("orders")])
        responses.append(side.order(side.first, "orders"))  # cancel the move
        responses.append(side.places("orders"))
        side.limit(None)
        responses.append(side.order(side.second, "orders"))
        side.until_moved("orders", "second")
        responses.append(side.places("orders"))
        side.produce("orders", b"after")
        responses.append(side.everything("orders", len(VALUES) + 1))
        # A cancelled copy may have any length; the log itself must be the same.
        responses.append({name: known for name, known in side.files("orders").items() if "/orders-0/" in name})
        responses.append({name.split("/")[1] for name in side.files("orders")})
        answers.append(responses)
    for theirs, ours in zip(*answers, strict=True):
        assert ours == theirs
    _move_by_tool(sides, log_oracle, tmp_path)


def _move_by_tool(sides: list[Side], log_oracle: LogOracle, tmp_path: Path) -> None:
    """Run `kafka-reassign-partitions` with log directories, back to the first one."""
    responses = []
    for number, side in enumerate(sides):
        plan = tmp_path / f"plan-{number}.json"
        wanted = {"topic": "orders", "partition": 0, "replicas": [1], "log_dirs": [side.first]}
        plan.write_text(json.dumps({"version": 1, "partitions": [wanted]}))
        tool = (f"{TOOLS}.reassign.ReassignPartitionsCommand", "--bootstrap-server", f"127.0.0.1:{side.wire._port}")
        executed = log_oracle.tool(*tool, "--reassignment-json-file", str(plan), "--execute")
        side.until_moved("orders", "first")
        verified = log_oracle.tool(*tool, "--reassignment-json-file", str(plan), "--verify")
        described = log_oracle.tool(f"{TOOLS}.LogDirsCommand", *tool[1:], "--describe", "--topic-list", "orders")
        reported = json.loads(described.splitlines()[-1])
        places = {
            Path(one["logDir"]).name: one["partitions"] for broker in reported["brokers"] for one in broker["logDirs"]
        }
        responses.append([text.replace(str(side.root), "ROOT") for text in (executed, verified)] + [places])
    assert responses[1] == responses[0]
    assert (
        "Reassignment of replica orders-0-1 completed successfully." in responses[0][1] or "complete" in responses[0][1]
    )


@pytest.mark.parametrize("is_clean", [pytest.param(True, marks=pytest.mark.slow), False])
def test_tailrace_completes_a_move_that_kafka_began(
    kafka_broker: Callable[..., KafkaBroker], tmp_path: Path, is_clean: bool
) -> None:
    kafka = kafka_on(kafka_broker, tmp_path)
    kafka.start()
    side = Side(kafka, tmp_path)
    side.order(side.first, "orders")
    side.create("orders", segment_bytes="1048576")
    side.produce("orders", *VALUES)
    written = side.everything("orders", len(VALUES))
    side.limit("1")
    assert side.order(side.second, "orders") == [("orders", 0, 0)]
    side._until(lambda: any(place[3] and place[1] for place in side.places("orders")))
    side.wire.close()
    if is_clean:
        kafka.stop()
    else:
        kafka.crash()
    with ours_on(tmp_path, kafka.port) as broker:
        side = Side(broker, tmp_path)
        assert [place[0] for place in side.places("orders") if place[3]] == ["second"]
        side.limit(None)
        side.until_moved("orders", "second")
        assert side.everything("orders", len(VALUES)) == written


@pytest.mark.slow
def test_kafka_completes_a_move_that_tailrace_began(kafka_broker: Callable[..., KafkaBroker], tmp_path: Path) -> None:
    kafka = kafka_on(kafka_broker, tmp_path)
    kafka.start()  # so that Kafka formats the directories
    kafka.stop()
    with ours_on(tmp_path, kafka.port) as broker:
        side = Side(broker, tmp_path)
        side.order(side.first, "orders")
        side.create("orders", segment_bytes="1048576")
        side.produce("orders", *VALUES)
        written = side.everything("orders", len(VALUES))
        side.limit("1")
        assert side.order(side.second, "orders") == [("orders", 0, 0)]
        side._until(lambda: any(place[3] and place[1] for place in side.places("orders")))
        side.wire.close()
        broker.stop()
    kafka.start()
    side = Side(kafka, tmp_path)
    side.limit(None)
    side.until_moved("orders", "second")
    assert side.everything("orders", len(VALUES)) == written
