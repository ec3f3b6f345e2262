"""Clients that mean harm, or know no better, at a real broker process: memory stays bounded, and others are served."""

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
    """The broker, somebody who uses it as one should, and somebody who does not."""

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
            if code != 3:  # made on first use, by asking for it
                break
            wanted = m.MetadataRequest.MetadataRequestTopic(name="orders")
            self._friend.ask(m.MetadataRequest(topics=[wanted], allow_auto_topic_creation=True), 9)
        assert code == 0

    def is_well(self) -> None:
        """A friend's requests are answered, each within a moment."""
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


def send_what_goes(connection: socket.socket, data: bytes) -> int:
    """As much as is taken without waiting."""
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
        assert time.monotonic() < deadline, "it does not come"
        time.sleep(0.05)


@FEW_OR_MANY
def test_writers_that_send_a_byte_at_a_time_are_answered_and_hold_up_nobody(victim: Victim, count: int) -> None:
    slow = [victim.connect() for _ in range(count)]
    request = frame(m.ApiVersionsRequest(), 0)
    for position in range(len(request)):
        for connection in slow:
            connection.sendall(request[position : position + 1])
        if position % 8 == 0:
            victim.is_well()
    for connection in slow:
        (size,) = struct.unpack(">i", connection.recv(4, socket.MSG_WAITALL))
        answer = connection.recv(size, socket.MSG_WAITALL)
        assert answer[:4] == struct.pack(">i", 1)


@FEW_OR_MANY
def test_frames_that_are_announced_and_never_come_take_no_memory(victim: Victim, count: int) -> None:
    before = victim.resident_bytes()
    for _ in range(count):
        victim.connect().sendall(struct.pack(">i", 100 * MB) + bytes(100))
    victim.is_well()
    # A connection is some kilobytes, and the first page of its buffer.
    assert victim.resident_bytes() - before < 8 * MB + count * 32 * 1024


@FEW_OR_MANY
def test_readers_that_never_read_take_no_memory(victim: Victim, count: int) -> None:
    for _ in range(60):
        victim.produce(bytes(900_000))
    before = victim.resident_bytes()
    greedy = fetch(50 * MB) * 20
    for _ in range(count):
        send_what_goes(victim.connect(receive_bytes=4096), greedy)
    victim.is_well()
    # Records are sent from their file, one reply at a time; requests behind it wait in the socket.
    assert victim.resident_bytes() - before < 16 * MB + count * 64 * 1024


@pytest.mark.parametrize("count", [30, pytest.param(150, marks=pytest.mark.slow)])  # each asks for much work
def test_answers_that_are_made_and_never_read_do_not_pile_up(victim: Victim, count: int) -> None:
    before = victim.resident_bytes()
    greedy = frame(m.DescribeConfigsRequest(resources=[_broker_configs()]), 4) * 2000  # 40 KB are told for 50
    for _ in range(count):
        send_what_goes(victim.connect(receive_bytes=4096), greedy)
    victim.is_well()
    assert victim.resident_bytes() - before < 16 * MB + count * 256 * 1024


def _broker_configs() -> m.DescribeConfigsRequest.DescribeConfigsResource:
    return m.DescribeConfigsRequest.DescribeConfigsResource(resource_type=4, resource_name="1", configuration_keys=None)


@FEW_OR_MANY
def test_who_connects_and_says_next_to_nothing_is_closed_after_a_while(tmp_path: Path, count: int) -> None:
    """connections.max.idle.ms, also of one that has begun a frame; not of one who asks now and then."""
    with TailraceProcess(tmp_path / "data", "-o", "connections.max.idle.ms=2000") as process:
        victim = Victim(process)
        idle = []
        for number in range(count):
            if number % 50 == 0:
                victim.is_well()
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
            victim.is_well()  # whose connection is used, and stays
            return all(map(is_closed, idle))

        until(all_are_closed)
        victim.close()
