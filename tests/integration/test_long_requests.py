"""A broker process while clients send requests that take seconds."""

from __future__ import annotations

import time
from contextlib import ExitStack
from pathlib import Path

from tailrace.protocol import messages as m
from tests.support.raw_client import RawClient
from tests.support.tailrace_process import TailraceProcess

NAMES = [f"group-{number}" for number in range(40_000)]


def test_a_broker_with_long_requests_serves_others_and_stops_on_sigterm(tmp_path: Path) -> None:
    with TailraceProcess(tmp_path / "data") as broker, ExitStack() as clients:
        address = f"127.0.0.1:{broker.port}"
        honest = clients.enter_context(RawClient(address))
        honest.ask(m.FindCoordinatorRequest(key_type=0, coordinator_keys=["group"]), 4)
        describe = m.DescribeGroupsRequest(groups=NAMES)
        for _ in range(4):
            clients.enter_context(RawClient(address)).send(describe, 5)
        waits = []
        for _ in range(50):
            began = time.monotonic()
            honest.ask(m.ApiVersionsRequest(), 0)
            waits.append(time.monotonic() - began)
        assert sorted(waits)[len(waits) // 2] < 0.5
        began = time.monotonic()
        assert broker.stop() == 0
        assert time.monotonic() - began < 30
