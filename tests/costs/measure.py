"""Measure one request: the broker's processor time and memory, and how long another client waits meanwhile.

A `Bystander` is a process of its own. It sends ApiVersions, Metadata and Produce in turn over one connection, and keeps
the longest wait. On a machine with other work a wait contains time in which the broker's loop, or the bystander, was
ready to run but had no processor. The kernel counts that time, and `wait_s` leaves it out; `raw_wait_s` has it.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import select
import socket
import struct
import time
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Final

from tailrace.protocol.headers import RequestHeader, write_request_header
from tailrace.protocol.messages import ApiVersionsRequest, MetadataRequest, ProduceRequest

DEADLINE_S: Final = 20.0
WINDOW_S: Final = 1.2
BUSY_SHARE: Final = 0.12  # a broker that uses less processor time in a window than this is idle: the request waits
PAUSE_S: Final = 0.03
PING_EVERY_S: Final = 0.002
_TICKS: Final = os.sysconf("SC_CLK_TCK")
_PROTOCOL_MAX: Final = 64 * 1024


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of one request."""

    cpu_s: float
    peak_bytes: int  # the rise of the resident size at its highest
    wait_s: float  # the longest wait of another client, without the time in which no processor was free
    raw_wait_s: float
    seconds: float  # until the response
    request_bytes: int
    response_bytes: int | None  # None if there was none
    outcome: str = ""  # "closed", "no response", "ended" (the process), "too long"

    @property
    def badness(self) -> float:
        """A number to order costs by: the wait, then memory and processor time."""
        ended = 1_000.0 if self.outcome == "ended" else 0.0
        return ended + self.wait_s + self.cpu_s / 20 + self.peak_bytes / 2e10


def cpu_seconds(pid: int) -> float:
    """Return the processor time of all threads of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def memory_bytes(pid: int, name: str = "VmRSS") -> int:
    """Return the resident size of a process, or with VmHWM its highest since `reset_peak`."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(name + ":"):
            return int(line.split()[1]) * 1024
    raise ProcessLookupError(pid)


def reset_peak(pid: int) -> None:
    Path(f"/proc/{pid}/clear_refs").write_text("5")


def delayed_ns(pid: int) -> int:
    """Return how long the main thread of a process was ready to run without a processor."""
    return int(Path(f"/proc/{pid}/schedstat").read_bytes().split()[1])


class Bystander:
    """A client that sends small requests all the time, as a process of its own."""

    def __init__(self, port: int, pid: int, topic: str, batch: bytes) -> None:
        context = multiprocessing.get_context("fork")
        self._pipe, other = context.Pipe()
        self._process = context.Process(target=_watch, args=(port, pid, topic, batch, other), daemon=True)
        self._process.start()
        other.close()
        assert self._ask("begin", 30) is not None, "the bystander cannot reach the broker"

    def begin(self) -> None:
        """Forget earlier waits."""
        self._ask("begin", DEADLINE_S)

    def longest(self, timeout_s: float) -> tuple[float, float] | None:
        """Return the longest wait since `begin`, without and with time that had no processor; None after timeout_s."""
        return self._ask("end", timeout_s)

    def _ask(self, word: str, timeout_s: float) -> Any:
        while self._pipe.poll():  # an answer that came after its timeout
            self._pipe.recv()
        try:
            self._pipe.send(word)
            return self._pipe.recv() if self._pipe.poll(timeout_s) else None
        except (EOFError, OSError):
            return None

    def close(self) -> None:
        self._process.kill()
        self._process.join()
        self._pipe.close()


def _watch(port: int, pid: int, topic: str, batch: bytes, pipe: Connection) -> None:
    """Send a request every few milliseconds until the process is killed or the broker is gone."""
    me = os.getpid()
    frames = _pings(topic, batch)
    longest = raw_longest = 0.0
    with contextlib.suppress(OSError, EOFError), socket.create_connection(("127.0.0.1", port)) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        number = 0
        while True:
            frame = frames[number % len(frames)]
            number += 1
            delayed = delayed_ns(pid) + delayed_ns(me)
            began = time.perf_counter()
            connection.sendall(frame)
            receive_response(connection)
            raw = time.perf_counter() - began
            wait = max(0.0, raw - (delayed_ns(pid) + delayed_ns(me) - delayed) / 1e9)
            longest, raw_longest = max(longest, wait), max(raw_longest, raw)
            if pipe.poll(PING_EVERY_S):
                word = pipe.recv()
                pipe.send((longest, raw_longest))
                if word == "begin":
                    longest = raw_longest = 0.0


def _pings(topic: str, batch: bytes) -> list[bytes]:
    produce = ProduceRequest(acks=1, timeout_ms=1000)
    data = produce.TopicProduceData(name=topic, partition_data=[produce.PartitionProduceData(index=0, records=batch)])
    produce.topic_data = [data]
    metadata = MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name=topic)])
    metadata.allow_auto_topic_creation = False
    frames = []
    for request, version in ((ApiVersionsRequest(), 0), (metadata, 8), (produce, 8)):
        frame = write_request_header(RequestHeader(request.SCHEMA.api_key, version, 1, "bystander"))
        frame += request.encode(version)
        frames.append(struct.pack(">i", len(frame)) + frame)
    return frames


def receive_response(connection: socket.socket) -> int:
    """Read one response and drop it; return its size."""
    size = left = int.from_bytes(_receive(connection, 4), "big")
    while left:
        left -= len(_receive(connection, min(left, _PROTOCOL_MAX), exactly=False))
    return size


def _receive(connection: socket.socket, size: int, *, exactly: bool = True) -> bytes:
    data = connection.recv(size)
    while data and exactly and len(data) < size:
        data += connection.recv(size - len(data))
    if not data:
        raise ConnectionError("the broker closed the connection")
    return data


def measure(port: int, pid: int, bystander: Bystander, frame: bytes, deadline_s: float = DEADLINE_S) -> Cost:
    """Send one request and return its cost. After `deadline_s` the measurement is given up."""
    connection = socket.create_connection(("127.0.0.1", port))
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", int(deadline_s), 0))
    with connection:
        bystander.begin()
        reset_peak(pid)
        before, cpu = memory_bytes(pid), cpu_seconds(pid)
        began = time.perf_counter()
        size: int | None = None
        try:
            connection.sendall(struct.pack(">i", len(frame)) + frame)
            outcome = _await_response(connection, pid, began + deadline_s)
            if not outcome:
                size = receive_response(connection)
        except OSError:
            outcome = "closed"
        seconds = time.perf_counter() - began
        if outcome not in ("too long", "ended"):
            time.sleep(PAUSE_S)
        waits = bystander.longest(max(1.0, deadline_s - seconds))
        try:
            peak = memory_bytes(pid, "VmHWM") - before
            used = cpu_seconds(pid) - cpu
        except (FileNotFoundError, ProcessLookupError):
            outcome, peak, used = "ended", 0, 0.0
    if waits is None:
        spent = time.perf_counter() - began
        outcome = "ended" if outcome == "ended" else "too long"
        waits = (spent, spent)
    return Cost(used, max(0, peak), waits[0], waits[1], seconds, len(frame), size, outcome)


def _await_response(connection: socket.socket, pid: int, until: float) -> str:
    """Wait until the response begins. Return why it does not, or nothing."""
    window_began, window_cpu = time.perf_counter(), cpu_seconds(pid)
    while not select.select([connection], [], [], 0.05)[0]:
        now = time.perf_counter()
        if now > until:
            return "too long"
        if now - window_began > WINDOW_S:
            cpu = cpu_seconds(pid)
            if cpu - window_cpu < BUSY_SHARE * (now - window_began):
                return "no response"
            window_began, window_cpu = now, cpu
    return ""
