"""The phases of a request's time, with a clock that the test moves."""

from __future__ import annotations

import logging
import socket
from collections.abc import Iterator

import pytest

from tailrace.broker.requests.request_context import ConnectionContext
from tailrace.protocol.headers import RequestHeader, write_request_header
from tailrace.server.connections.connection import Connection
from tailrace.server.metrics.api_meter import ApiMeter
from tailrace.server.metrics.request_meter import OTHER, VERSIONS_MAX, RequestMeter
from tailrace.server.receiving.frame_input import FrameInput
from tailrace.server.receiving.receive_buffers import FrameBuffers

MS = 1_000_000


class Clock:
    def __init__(self) -> None:
        self.now_ns = 0

    def __call__(self) -> int:
        return self.now_ns

    def pass_ms(self, milliseconds: int) -> None:
        self.now_ns += milliseconds * MS


@pytest.fixture
def connection() -> Iterator[Connection]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield Connection(ours, ConnectionContext(1), FrameInput(1_000, FrameBuffers()), lambda *_: False, 0)


def frame(key: int = 1, version: int = 12) -> memoryview:
    return memoryview(bytearray(write_request_header(RequestHeader(key, version, 7, "me")) + b"body"))


def totals(meter: ApiMeter) -> dict[str, tuple[int, int]]:
    """Return each phase's count, and its sum in milliseconds."""
    phases = {name: getattr(meter, name) for name in ("queue", "local", "remote", "response", "throttle", "total")}
    return {name: (one.count, one.total // MS) for name, one in phases.items()}


def test_an_immediate_response_has_no_remote_time(connection: Connection) -> None:
    clock = Clock()
    meter = RequestMeter(clock)
    meter.waits()
    clock.pass_ms(100)
    meter.wakes()
    clock.pass_ms(1)  # another connection is read
    meter.round_begins()
    meter.taken(connection, frame())
    clock.pass_ms(5)
    meter.handled(connection)
    clock.pass_ms(2)  # another connection's request
    meter.round_ends(1)
    meter.replied(connection, 0, is_sent=False)
    clock.pass_ms(3)
    meter.sent(connection)
    meter.waits()
    assert totals(meter.apis[1]) == {
        "queue": (1, 1),
        "local": (1, 5),
        "remote": (0, 0),
        "response": (1, 3),
        "throttle": (0, 0),
        "total": (1, 11),
    }
    assert (meter.idle_ns, meter.busy_ns) == (100 * MS, 11 * MS)


def test_each_request_of_a_run_is_measured(connection: Connection) -> None:
    clock = Clock()
    meter = RequestMeter(clock)
    meter.wakes()
    meter.round_begins()
    for key in (0, 0, 1):
        meter.taken(connection, frame(key))
        clock.pass_ms(5)
        meter.handled(connection)
    meter.round_ends(3)
    for _ in range(3):
        meter.replied(connection, 0, is_sent=False)
    clock.pass_ms(1)
    meter.sent(connection)
    assert totals(meter.apis[0]) == {
        "queue": (1, 5), "local": (2, 10), "remote": (0, 0), "response": (2, 2), "throttle": (0, 0), "total": (2, 32),
    }  # fmt: skip
    assert totals(meter.apis[1])["local"] == (1, 5)
    assert totals(meter.apis[1])["total"] == (1, 16)


def test_a_waiting_request_has_remote_time_until_its_reply(connection: Connection) -> None:
    clock = Clock()
    meter = RequestMeter(clock)
    meter.wakes()
    meter.round_begins()
    meter.taken(connection, frame())
    clock.pass_ms(1)
    meter.handled(connection)
    meter.round_ends(0)
    meter.waits()
    clock.pass_ms(500)
    meter.wakes()
    meter.round_begins()
    meter.round_ends(1)
    meter.replied(connection, 250, is_sent=True)
    assert totals(meter.apis[1]) == {
        "queue": (0, 0),  # so short that it is only summed up
        "local": (1, 1),
        "remote": (1, 500),
        "response": (0, 0),
        "throttle": (1, 250),
        "total": (1, 501),
    }


def test_unknown_apis_share_one_meter(connection: Connection) -> None:
    meter = RequestMeter(Clock())
    for key in range(65_536):
        meter.taken(connection, memoryview(key.to_bytes(2, "big") + b"\x7f\xff"))
    for version in range(1_000):
        meter.taken(connection, frame(1, version % 100))
    meter.taken(connection, memoryview(b""))
    names = [one.name for one in meter.apis.values()]
    assert len(names) == len(set(names)) < 100
    assert names.count(OTHER) == 1
    assert len(meter.apis[1].versions) == VERSIONS_MAX + 1
    assert sum(one.requests for one in meter.apis.values()) == meter.requests == 66_537
    assert all(one.size_histogram().count == one.requests for one in meter.apis.values())


def test_the_request_log_is_written_only_at_level_debug(
    connection: Connection, caplog: pytest.LogCaptureFixture
) -> None:
    def ask() -> None:
        meter = RequestMeter(Clock())
        meter.taken(connection, frame())
        meter.handled(connection)
        meter.replied(connection, 0, is_sent=True)

    with caplog.at_level(logging.INFO):
        ask()
    assert caplog.records == []
    with caplog.at_level(logging.DEBUG):
        ask()
    (record,) = caplog.records
    reported = record.__dict__["fields"]
    assert (reported["api"], reported["version"], reported["correlation_id"], reported["client_id"]) == (
        "Fetch",
        12,
        7,
        "me",
    )
    assert reported["client"] == "127.0.0.1:0"
