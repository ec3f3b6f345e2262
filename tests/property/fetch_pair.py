"""FetchPair: Apache Kafka and our Fetch path over the same bytes, asked the same questions.

Kafka writes topics over two lives, so that their logs have several leader epochs, transactions, compressed batches,
small segments and a log start in the middle of a batch. Then our logs are opened on copies of its folders. `ask` sends
a request to both and returns both answers as a client reads them; session ids are each side's own, and are translated.
"""

from __future__ import annotations

import shutil
import socket
import struct
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from tailrace.fetch.response import refused_fetch
from tailrace.log.disk.checkpoints import read_topic_id
from tailrace.log.disk.files import DiskFiles
from tailrace.log.recovery.recovery import open_log
from tailrace.metadata.image.registrations import Endpoint
from tailrace.model.configs.topic_settings import parse_topic_config
from tailrace.model.errors import KafkaError
from tailrace.model.ids import TopicPartition
from tailrace.model.steps import run_steps
from tailrace.protocol.flat.fetch import ask_of, message_of
from tailrace.protocol.headers import RequestHeader, response_header_version, write_request_header
from tailrace.protocol.messages import FetchRequest, FetchResponse, MetadataRequest, MetadataResponse
from tailrace.replication.partition import Partition
from tests.simulation.node import Node, broker, registration
from tests.support.kafka_broker import KafkaBroker
from tests.support.log_oracle import LogOracle
from tests.support.oracle_types import OracleRecord

FETCH, METADATA = 1, 3
LAST_VERSION = 18
SMALL = {"internal.segment.bytes": "600", "index.interval.bytes": "150", "segment.ms": "2000000000000"}
TOPICS = {
    "plain": (3, SMALL),
    "transactions": (1, SMALL),
    "squeezed": (1, {"compression.type": "zstd"}),
    "deleted": (1, {}),
    "empty": (1, {}),
}


class Raw:
    """A connection on which requests are sent as they are."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=30)

    def ask(self, api_key: int, version: int, body: bytes) -> bytes:
        header = write_request_header(RequestHeader(api_key, version, 7, "tailrace"))
        self._socket.sendall(struct.pack(">i", len(header) + len(body)) + header + body)
        (size,) = struct.unpack(">i", self._receive(4))
        answer = self._receive(size)
        return answer[5 if response_header_version(api_key, version) else 4 :]

    def _receive(self, size: int) -> bytes:
        parts = bytearray()
        while len(parts) < size:
            part = self._socket.recv(size - len(parts))
            if not part:
                raise ConnectionError("the broker closed the connection")
            parts += part
        return bytes(parts)

    def close(self) -> None:
        self._socket.close()


class Life(NamedTuple):
    """The state of a partition of Kafka's when it is copied."""

    key: TopicPartition
    folder: Path
    log_start: int
    leader_epoch: int
    config: dict[str, str]


class FetchPair:
    def __init__(self, kafka: KafkaBroker, oracle: LogOracle, directory: Path) -> None:
        self.kafka = kafka
        client = oracle.connect(kafka.bootstrap)
        for topic, (partitions, config) in TOPICS.items():
            client.create_topic(topic, partitions, config)
        write_first_life(client)
        client.close()
        kafka.restart()
        client = oracle.connect(kafka.bootstrap)
        write_second_life(client)
        starts = {key: client.bounds(*key)[0] for key in self._keys()}
        client.close()
        kafka.stop()
        shutil.copytree(kafka.data, directory / "copy")
        kafka.start()
        self.raw = Raw(kafka.port)
        self.node = Node(files=DiskFiles())
        self._adopt(directory / "copy", starts)
        self.sessions: dict[int, int] = {0: 0}  # ours → Kafka's

    @staticmethod
    def _keys() -> list[TopicPartition]:
        return [TopicPartition(topic, n) for topic, (count, _) in TOPICS.items() for n in range(count)]

    def _leader_epochs(self) -> dict[TopicPartition, int]:
        request = MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name=name) for name in TOPICS])
        response = MetadataResponse.decode(self.raw.ask(METADATA, 12, request.encode(12)), 12)
        return {
            TopicPartition(topic.name or "", one.partition_index): one.leader_epoch
            for topic in response.topics
            for one in topic.partitions
        }

    def _adopt(self, copy: Path, starts: dict[TopicPartition, int]) -> None:
        node = self.node
        own = broker(1)
        node.know(
            own.__class__(
                **{**_fields(own), "endpoints": {"PLAINTEXT": Endpoint("PLAINTEXT", "127.0.0.1", self.kafka.port)}}
            )
        )
        epochs = self._leader_epochs()
        for key in self._keys():
            folder = copy / str(key)
            log = open_log(
                node.files,
                str(folder),
                parse_topic_config(TOPICS[key.topic][1]),
                now_ms=node.now_ms,
                clean=True,
                log_start_offset=starts[key],
            )
            topic_id = read_topic_id(node.files, str(folder / "partition.metadata")).value.bytes
            partition = Partition(log, node.settings, topic_id)
            node.partitions.add(partition)
            node.apply(partition, registration(1, (1,), leader_epoch=epochs[key]))

    @property
    def partitions(self) -> list[Partition]:
        return list(self.node.partitions)

    def ask(self, request: FetchRequest, version: int) -> tuple[FetchResponse, FetchResponse]:
        """Return our answer and Kafka's. The session id in Kafka's answer is replaced by ours."""
        ours = self._ask_us(request, version)
        asked = request.session_id
        request.session_id = self.sessions.get(asked, asked)
        theirs = FetchResponse.decode(self.raw.ask(FETCH, version, request.encode(version)), version)
        request.session_id = asked
        if ours.session_id and theirs.session_id and ours.session_id not in self.sessions:
            self.sessions[ours.session_id] = theirs.session_id
        translated = {kafkas: own for own, kafkas in self.sessions.items()}
        theirs.session_id = translated.get(theirs.session_id, theirs.session_id)
        return ours, theirs

    def close_sessions(self) -> None:
        """Close every session that is open, so that neither side's cache fills up."""
        for session in [one for one in self.sessions if one]:
            ours, theirs = self.ask(
                request([], version=LAST_VERSION, session_id=session, session_epoch=-1), LAST_VERSION
            )
            assert (ours.error_code, theirs.error_code) == (0, 0)
            del self.sessions[session]
        assert len(self.node.sessions) == 0

    def _ask_us(self, request: FetchRequest, version: int) -> FetchResponse:
        try:
            asked = self.node.send(FetchRequest.decode(request.encode(version), version), version)
        except KafkaError as error:
            refused = message_of(run_steps(refused_fetch(ask_of(request, version), version, error.code), 0))
            return FetchResponse.decode(refused.encode(version), version)
        if asked.is_waiting:
            self.node.pass_ms(max(request.max_wait_ms, 0))
        return FetchResponse.decode(asked.response_bytes(asked.response), version)

    def close(self) -> None:
        self.raw.close()


def _fields(one: Any) -> dict[str, Any]:
    return {name: getattr(one, name) for name in type(one).__dataclass_fields__}


def reported(response: FetchResponse) -> dict[str, Any]:
    """Return an answer as plain values, with records as bytes."""
    return {
        "throttle": response.throttle_time_ms,
        "error": response.error_code,
        "session": response.session_id,
        "nodes": [(one.node_id, one.host, one.port, one.rack) for one in response.node_endpoints],
        "topics": [
            (topic.topic, topic.topic_id.hex(), [_partition(one) for one in topic.partitions])
            for topic in response.responses
        ],
    }


def _partition(one: FetchResponse.PartitionData) -> dict[str, Any]:
    aborted = one.aborted_transactions
    return {
        "index": one.partition_index,
        "error": one.error_code,
        "high watermark": one.high_watermark,
        "last stable": one.last_stable_offset,
        "log start": one.log_start_offset,
        "diverging": (one.diverging_epoch.epoch, one.diverging_epoch.end_offset),
        "leader": (one.current_leader.leader_id, one.current_leader.leader_epoch),
        "aborted": None if aborted is None else [(two.producer_id, two.first_offset) for two in aborted],
        "preferred": one.preferred_read_replica,
        "records": None if one.records is None else bytes(one.records).hex(),
    }


# What Kafka writes


def _values(name: str, count: int, size: int = 20) -> list[OracleRecord]:
    return [OracleRecord(value=f"{name}{n}".encode().ljust(size, b".")) for n in range(count)]


def write_first_life(client: Any) -> None:
    for partition in range(2):
        for n in range(6):
            client.produce("plain", partition, _values(f"first{n}-", 1 + n % 4))
    client.produce("plain", 0, _values("gzip", 8), config={"compression.type": "gzip"})
    for n, end in enumerate(("commit", "abort", "commit", "abort")):
        client.transaction(f"tx{n}", "transactions", 0, _values(f"tx{n}-", 3, 40), _values("more", 2), end=end)
    client.produce("squeezed", 0, _values("zstd", 30))
    client.produce("deleted", 0, _values("deleted", 5))
    client.produce("deleted", 0, _values("kept", 5))


def write_second_life(client: Any) -> None:
    client.produce("plain", 0, *(_values(f"second{n}-", 2) for n in range(4)))
    client.transaction("late", "transactions", 0, _values("late", 4, 60), end="abort")
    client.produce("transactions", 0, _values("outside", 2))
    patient = {"transaction.timeout.ms": "900000"}  # or else the coordinator ends it while we compare
    client.transaction("open", "transactions", 0, _values("open", 2), end="open", config=patient)
    client.produce("transactions", 0, _values("after", 3))
    client.delete_records("deleted", 0, 7)


def request(
    topics: Iterable[FetchRequest.FetchTopic],
    *,
    version: int,
    replica: int = -1,
    forgotten: Iterable[FetchRequest.ForgottenTopic] = (),
    **fields: Any,
) -> FetchRequest:
    made = FetchRequest(topics=list(topics), forgotten_topics_data=list(forgotten), **fields)
    if version >= 15:
        made.replica_state = FetchRequest.ReplicaState(replica_id=replica)
    else:
        made.replica_id = replica
    return made
