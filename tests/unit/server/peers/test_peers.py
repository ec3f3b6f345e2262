"""Connections to other nodes, with a real epoll and a peer that is a socket of the test."""

from __future__ import annotations

import random
import resource
import socket
import struct
from collections.abc import Iterator
from pathlib import Path
from select import select
from typing import Any

import pytest

from tailrace.protocol.headers import read_request_header, write_response
from tailrace.protocol.messages import (
    ApiVersionsResponse,
    DescribeClusterRequest,
    DescribeClusterResponse,
    EnvelopeRequest,
)
from tailrace.server.loop.poll import open_poll
from tailrace.server.peers.peer_connection import ANSWER_BYTES_MAX
from tailrace.server.peers.peers import BACKOFF_MS, CONNECT_MS_MAX, Peers
from tailrace.waiting.outbox import Failure, Outbox, Peer

VERSIONS = ApiVersionsResponse.ApiVersion
NOW_MS = 1_700_000_000_000


class Network:
    """Peers on an epoll, with the test's clock and the callbacks to the core."""

    def __init__(self) -> None:
        self.poll = open_poll()
        self.outbox = Outbox()
        self.time_ms = 1_000
        self.peers = Peers(self.poll, self.outbox, timer_ms=lambda: self.time_ms)
        self.reported: list[Any] = []

    def send(self, peer: Peer, body: Any, **options: Any) -> None:
        def answered(response: Any, now_ms: int) -> None:
            assert now_ms == NOW_MS
            self.reported.append(response)

        self.outbox.send(peer, body, answered, lambda failure, now_ms: self.reported.append(failure), **options)
        self.peers.send_waiting()

    def run(self, until: Any, passes: int = 2_000) -> None:
        for _ in range(passes):
            if until():
                return
            for descriptor, mask in self.poll.poll(0.01):
                assert self.peers.serve(descriptor, mask, NOW_MS)
        raise AssertionError("it never came to that")


class OtherNode:
    """A listener whose connections answer ApiVersions, and DescribeCluster on request."""

    def __init__(self, top_version: int = 1) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.peer = Peer("test", *self.listener.getsockname()[:2])
        self.top_version = top_version
        self.connection: socket.socket | None = None
        self.asked: list[tuple[int, int, int]] = []  # key, version, correlation id
        self.buffer = b""

    def accept(self) -> None:
        self.connection, _ = self.listener.accept()
        self.connection.settimeout(10)

    def take(self) -> tuple[int, int, int]:
        assert self.connection is not None
        while len(self.buffer) < 4 or len(self.buffer) < 4 + struct.unpack(">i", self.buffer[:4])[0]:
            data = self.connection.recv(65536)
            assert data, "the client has gone"
            self.buffer += data
        size = struct.unpack(">i", self.buffer[:4])[0]
        header, _ = read_request_header(self.buffer[4 : 4 + size])
        self.buffer = self.buffer[4 + size :]
        return header.api_key, header.api_version, header.correlation_id

    def answer(self, asked: tuple[int, int, int], response: Any, pieces: int = 1) -> None:
        assert self.connection is not None
        data = b"".join(write_response(*asked, response))
        data = struct.pack(">i", len(data)) + data
        step = max(len(data) // pieces, 1)
        for start in range(0, len(data), step):
            self.connection.sendall(data[start : start + step])

    def agree(self, network: Network) -> None:
        network.run(lambda: select_ready(self.listener))
        self.accept()
        network.run(lambda: select_ready(self.connection))
        asked = self.take()
        assert asked[0] == 18
        keys = [VERSIONS(api_key=18, max_version=4), VERSIONS(api_key=60, max_version=self.top_version)]
        self.answer(asked, ApiVersionsResponse(api_keys=keys))

    def close(self) -> None:
        self.listener.close()
        if self.connection is not None:
            self.connection.close()


@pytest.fixture
def node() -> Iterator[OtherNode]:
    made = OtherNode()
    yield made
    made.close()


@pytest.fixture
def network() -> Iterator[Network]:
    made = Network()
    yield made
    made.peers.close()
    made.poll.close()


def test_requests_are_sent_in_the_highest_common_version_and_answered_in_order(
    network: Network, node: OtherNode
) -> None:
    for _ in range(7):
        network.send(node.peer, DescribeClusterRequest())
    node.agree(network)
    network.run(lambda: not network.peers._lines[node.peer].queue or select_ready(node.connection))
    for number in range(7):
        network.run(lambda: select_ready(node.connection) or len(node.buffer) > 4)
        asked = node.take()
        assert asked[:2] == (60, 1)  # of 0 to 2 here, 0 to 1 there
        node.answer(asked, DescribeClusterResponse(cluster_id=f"c{number}"), pieces=3)
        network.run(lambda number=number: len(network.reported) > number)
    assert [one.cluster_id for one in network.reported] == [f"c{number}" for number in range(7)]


@pytest.mark.parametrize("seed", range(4))
def test_responses_are_complete_wherever_reads_end(network: Network, node: OtherNode, seed: int) -> None:
    """Several in one piece, one in many, larger ones than are read at a time."""
    chance = random.Random(seed)
    one = DescribeClusterResponse.DescribeClusterBroker(host="h" * 1_000)
    answers = [
        DescribeClusterResponse(cluster_id=name, brokers=[one] * chance.choice([0, 1, 32, 33, 100])) for name in "abcde"
    ]
    for _ in answers:
        network.send(node.peer, DescribeClusterRequest())
    node.agree(network)
    network.run(lambda: select_ready(node.connection))
    data = b""
    for answer in answers:
        network.run(lambda: select_ready(node.connection) or len(node.buffer) > 4)
        body = b"".join(write_response(*node.take(), answer))
        data += struct.pack(">i", len(body)) + body
    assert node.connection is not None
    while data:
        size = chance.choice([1, 2, 3, 5, 100, 32_768, 70_000])
        node.connection.sendall(data[:size])
        data = data[size:]
        for descriptor, mask in network.poll.poll(0.01):
            assert network.peers.serve(descriptor, mask, NOW_MS)
    network.run(lambda: len(network.reported) == len(answers))
    assert network.reported == answers


def test_a_request_made_by_a_response_is_sent_at_once(network: Network, node: OtherNode) -> None:
    def nobody(response: Any, now_ms: int) -> None:
        raise AssertionError("there is no answer")

    def answered(response: Any, now_ms: int) -> None:
        network.outbox.send(node.peer, DescribeClusterRequest(), nobody, nobody)

    network.outbox.send(node.peer, DescribeClusterRequest(), answered, nobody)
    network.peers.send_waiting()
    node.agree(network)
    network.run(lambda: select_ready(node.connection))
    node.answer(node.take(), DescribeClusterResponse())
    network.run(lambda: select_ready(node.connection))
    assert node.take()[0] == 60


def test_a_request_that_the_peer_does_not_support_is_not_sent(network: Network, node: OtherNode) -> None:
    network.send(node.peer, EnvelopeRequest(request_data=b"", request_principal=b"", client_host_address=b""))
    network.send(node.peer, DescribeClusterRequest(), version_min=2)
    node.agree(network)
    network.run(lambda: len(network.reported) == 2)
    assert network.reported == [Failure.UNSUPPORTED, Failure.UNSUPPORTED]


def test_an_unreachable_peer_is_tried_again_after_a_back_off(network: Network, node: OtherNode) -> None:
    node.listener.close()
    network.send(node.peer, DescribeClusterRequest())
    while not network.reported:
        for descriptor, mask in network.poll.poll(0.01):
            network.peers.serve(descriptor, mask, NOW_MS)
        network.peers.tick(NOW_MS)
    assert network.reported == [Failure.UNREACHABLE]
    network.send(node.peer, DescribeClusterRequest())
    assert network.peers.next_deadline_ms() == network.time_ms + BACKOFF_MS
    network.peers.tick(NOW_MS)
    assert len(network.reported) == 1
    network.time_ms += BACKOFF_MS
    while len(network.reported) < 2:
        for descriptor, mask in network.poll.poll(0.01):
            network.peers.serve(descriptor, mask, NOW_MS)
        network.peers.tick(NOW_MS)
    network.send(node.peer, DescribeClusterRequest())
    assert network.peers.next_deadline_ms() == network.time_ms + 2 * BACKOFF_MS


def test_a_timeout_fails_the_request_and_closes_the_connection(network: Network, node: OtherNode) -> None:
    network.send(node.peer, DescribeClusterRequest(), timeout_ms=500)
    node.agree(network)
    network.run(lambda: select_ready(node.connection))
    assert network.peers.next_deadline_ms() == network.time_ms + 500
    network.time_ms += 500
    network.peers.tick(NOW_MS)
    assert network.reported == [Failure.TIMED_OUT]
    network.send(node.peer, DescribeClusterRequest())
    node.agree(network)


def test_a_peer_that_accepts_and_sends_nothing_is_disconnected(network: Network, node: OtherNode) -> None:
    network.send(node.peer, DescribeClusterRequest(), timeout_ms=60_000)
    network.run(lambda: select_ready(node.listener))
    node.accept()
    network.time_ms += CONNECT_MS_MAX
    network.peers.tick(NOW_MS)
    assert network.reported == [Failure.UNREACHABLE]


def test_a_lost_connection_fails_the_sent_requests(network: Network, node: OtherNode) -> None:
    network.send(node.peer, DescribeClusterRequest())
    node.agree(network)
    network.run(lambda: select_ready(node.connection))
    assert node.connection is not None
    node.take()
    node.connection.close()
    network.run(lambda: network.reported)
    assert network.reported == [Failure.LOST]


def test_a_removed_peer_is_disconnected(network: Network, node: OtherNode) -> None:
    network.send(node.peer, DescribeClusterRequest())
    node.agree(network)
    network.run(lambda: select_ready(node.connection))
    network.outbox.disconnect(node.peer)
    assert network.peers.send_waiting()
    assert network.peers.next_deadline_ms() == 0
    network.peers.tick(NOW_MS)
    assert network.reported == [Failure.LOST]


@pytest.mark.parametrize("frame", [bytes(4), bytes(3) + b"\1", bytes(4) + b"\0", bytes(4) + b"\x7f\xff" + bytes(40)])
def test_a_malformed_response_to_api_versions_ends_only_its_connection(
    network: Network, node: OtherNode, frame: bytes
) -> None:
    network.send(node.peer, DescribeClusterRequest())
    network.run(lambda: select_ready(node.listener))
    node.accept()
    network.run(lambda: select_ready(node.connection))
    node.take()
    assert node.connection is not None
    node.connection.sendall(struct.pack(">i", len(frame)) + frame)
    network.run(lambda: network.reported)
    assert network.reported == [Failure.UNREACHABLE]


@pytest.mark.parametrize("host", ["x" * 64, "a..b", "\0", "é" * 300])
def test_a_host_that_cannot_be_a_name_fails_the_request(network: Network, host: str) -> None:
    network.send(Peer("test", host, 9092), DescribeClusterRequest())
    network.peers.tick(NOW_MS)
    assert network.reported == [Failure.UNREACHABLE]


def test_memory_for_a_large_response_is_taken_as_its_bytes_arrive(network: Network, node: OtherNode) -> None:
    network.send(node.peer, DescribeClusterRequest())
    network.run(lambda: select_ready(node.listener))
    node.accept()
    assert node.connection is not None
    before = resident_bytes()
    node.connection.sendall(struct.pack(">i", ANSWER_BYTES_MAX) + bytes(100))
    network.run(lambda: _has_begun(network))
    assert resident_bytes() - before < ANSWER_BYTES_MAX // 8


def _has_begun(network: Network) -> bool:
    return any(line.connection is not None and line.connection.has_input for line in network.peers._lines.values())


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def select_ready(one: socket.socket | None) -> bool:
    """Return True if there is something to read or to accept."""
    return one is not None and bool(select([one], [], [], 0)[0])
