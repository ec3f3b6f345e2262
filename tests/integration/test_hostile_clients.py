"""Hostile or careless clients at a real broker process: its memory stays bounded, and other clients are served."""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tailrace.protocol import messages as m
from tailrace.protocol.headers import RequestHeader, write_request_header
from tests.support.api_twins import KafkaSide
from tests.support.batches import batch
from tests.support.tailrace_process import TailraceProcess

MB = 1024 * 1024
PATIENCE_S = 60.0
FEW_OR_MANY = pytest.mark.parametrize("count", [30, pytest.param(1000, marks=pytest.mark.slow)])


class Victim:
    """The broker, a client that behaves well, and a hostile client."""

    def __init__(self, process: TailraceProcess) -> None:
        self.port = process.port
        assert process.process is not None
        self._pid = process.process.pid
        self._friend = KafkaSide(process.port)
        self._stack = ExitStack()
        self.produce(b"first")

    def close(self) -> None:
        self._stack.close()
        self._friend.close()

    def connect(self, *, receive_bytes: int | None = None) -> socket.socket:
        connection = socket.socket()
        if receive_bytes is not None:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
        connection.settimeout(PATIENCE_S)
        connection.connect(("127.0.0.1", self.port))
        return self._stack.enter_context(connection)

    def resident_bytes(self) -> int:
        return int(Path(f"/proc/{self._pid}/statm").read_text().split()[1]) * 4096

    def produce(self, value: bytes) -> None:
        request = m.ProduceRequest(acks=-1, timeout_ms=10_000)
        data = request.PartitionProduceData(index=0, records=bytes(batch(value)))
        request.topic_data = [request.TopicProduceData(name="orders", partition_data=[data])]
        while True:
            code = self._friend.ask(request, 9).responses[0].partition_responses[0].error_code
            if code != 3:  # the topic is created by the first request for it
                break
            wanted = m.MetadataRequest.MetadataRequestTopic(name="orders")
            self._friend.ask(m.MetadataRequest(topics=[wanted], allow_auto_topic_creation=True), 9)
        assert code == 0

    def check_others_are_served(self) -> None:
        """Check that the requests of a client that behaves well are answered quickly."""
        for _ in range(5):
            began = time.monotonic()
            self.produce(b"hello")
            assert time.monotonic() - began < 10


@pytest.fixture
def victim(tmp_path: Path) -> Iterator[Victim]:
    with TailraceProcess(tmp_path / "data", "-o", "connections.max.idle.ms=600000") as process:
        found = Victim(process)
        yield found
        found.close()


def frame(request: object, version: int, correlation_id: int = 1) -> bytes:
    key = request.SCHEMA.api_key  # type: ignore[attr-defined]
    header = write_request_header(RequestHeader(key, version, correlation_id, "hostile"))
    body = header + request.encode(version)  # type: ignore[attr-defined]
    return struct.pack(">i", len(body)) + body


def fetch(size: int) -> bytes:
    request = m.FetchRequest(replica_id=-1, max_wait_ms=0, min_bytes=0, max_bytes=size)
    wanted = request.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=size)
    request.topics = [request.FetchTopic(topic="orders", partitions=[wanted])]
    return frame(request, 11)


def send_without_waiting(connection: socket.socket, data: bytes) -> int:
    """Send as many bytes as the socket takes without waiting, and return their number."""
    connection.setblocking(False)
    sent = 0
    try:
        while sent < len(data):
            sent += connection.send(data[sent:])
    except BlockingIOError:
        pass
    return sent


def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < deadline, "the condition was not met in time"
        time.sleep(0.05)


@FEW_OR_MANY
def test_writers_of_one_byte_at_a_time_are_answered_and_delay_no_other_client(victim: Victim, count: int) -> None:
    slow = [victim.connect() for _ in range(count)]
    request = frame(m.ApiVersionsRequest(), 0)
    for position in range(len(request)):
        for connection in slow:
            connection.sendall(request[position : position + 1])
        if position % 8 == 0:
            victim.check_others_are_served()
    for connection in slow:
        (size,) = struct.unpack(">i", connection.recv(4, socket.MSG_WAITALL))
        answer = connection.recv(size, socket.MSG_WAITALL)
        assert answer[:4] == struct.pack(">i", 1)


@FEW_OR_MANY
def test_announced_frames_that_never_arrive_take_no_memory(victim: Victim, count: int) -> None:
    before = victim.resident_bytes()
    for _ in range(count):
        victim.connect().sendall(struct.pack(">i", 100 * MB) + bytes(100))
    victim.check_others_are_served()
    # A connection takes some kilobytes, and the first page of its buffer.
    assert victim.resident_bytes() - before < 8 * MB + count * 32 * 1024


@FEW_OR_MANY
def test_clients_that_never_read_take_no_memory(victim: Victim, count: int) -> None:
    for _ in range(60):
        victim.produce(bytes(900_000))
    before = victim.resident_bytes()
    greedy = fetch(50 * MB) * 20
    for _ in range(count):
        send_without_waiting(victim.connect(receive_bytes=4096), greedy)
    victim.check_others_are_served()
    # Records are sent from their file, one reply at a time; later requests wait in the socket.
    assert victim.resident_bytes() - before < 16 * MB + count * 64 * 1024


@pytest.mark.parametrize("count", [30, pytest.param(150, marks=pytest.mark.slow)])  # each client causes much work
def test_responses_that_are_never_read_do_not_accumulate(victim: Victim, count: int) -> None:
    before = victim.resident_bytes()
    # a response of 40 KB for a request of 50 bytes
    greedy = frame(m.DescribeConfigsRequest(resources=[_broker_configs()]), 4) * 2000
    for _ in range(count):
        send_without_waiting(victim.connect(receive_bytes=4096), greedy)
    victim.check_others_are_served()
    assert victim.resident_bytes() - before < 16 * MB + count * 256 * 1024


def _broker_configs() -> m.DescribeConfigsRequest.DescribeConfigsResource:
    return m.DescribeConfigsRequest.DescribeConfigsResource(resource_type=4, resource_name="1", configuration_keys=None)


@FEW_OR_MANY
def test_idle_connections_are_closed_after_connections_max_idle_ms(tmp_path: Path, count: int) -> None:
    """A connection with an unfinished frame is closed too, but not a connection that sends requests from
    time to time.
    """
    with TailraceProcess(tmp_path / "data", "-o", "connections.max.idle.ms=2000") as process:
        victim = Victim(process)
        idle = []
        for number in range(count):
            if number % 50 == 0:
                victim.check_others_are_served()
            connection = victim.connect()
            connection.sendall([b"", b"\0", b"\0\0\0\x50" + bytes(20), fetch(100)][number % 4])
            connection.setblocking(False)
            idle.append(connection)

        def is_closed(connection: socket.socket) -> bool:
            try:
                while connection.recv(4096):
                    pass
            except BlockingIOError:
                return False
            except ConnectionError:
                return True
            return True

        def all_are_closed() -> bool:
            victim.check_others_are_served()  # this connection is used, and stays open
            return all(map(is_closed, idle))

        until(all_are_closed)
        victim.close()
