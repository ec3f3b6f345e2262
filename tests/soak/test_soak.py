"""The verdict on a soak finds what is broken; and a soak of two minutes passes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.soak.honest import Operation
from tests.soak.run import soak
from tests.soak.verdict import Report, judge

_ALONE = [Operation("client", float(at), 0.01) for at in range(100)]
_ATTACKED = [Operation("client", float(at), 0.012) for at in range(100, 200)]
_GOOD = Report(
    [*_ALONE, *_ATTACKED], [(float(at), 100_000_000) for at in range(200)], 100.0, True, 0, "", {"attacker": 1}
)


def test_a_quiet_soak_passes() -> None:
    assert judge(_GOOD, 2.0) == []


def test_a_broker_that_ended_is_reported() -> None:
    (problem,) = judge(replace(_GOOD, is_alive=False, status=None, errors="MemoryError"), 2.0)
    assert "MemoryError" in problem


def test_an_error_of_an_honest_client_is_reported() -> None:
    failed = Operation("client", 150.0, 1.0, "TimeoutError: no answer")
    (problem,) = judge(replace(_GOOD, operations=[*_GOOD.operations, failed]), 2.0)
    assert problem == "client saw 1 times: TimeoutError: no answer"


def test_latency_that_rises_is_reported() -> None:
    slower = [replace(one, seconds=one.seconds * 10) for one in _ATTACKED]
    problems = judge(replace(_GOOD, operations=[*_ALONE, *slower]), 2.0)
    assert len(problems) == 2


def test_a_client_that_stopped_is_reported() -> None:
    (problem,) = judge(replace(_GOOD, operations=_ALONE), 2.0)
    assert "too few" in problem


def test_an_idle_attacker_is_reported() -> None:
    assert judge(replace(_GOOD, acts={"attacker": 0}), 2.0) == ["the attacker attacker did nothing"]


def test_memory_that_grows_is_reported() -> None:
    growing = [(float(at), 100_000_000 + at * 2_000_000) for at in range(200)]
    (problem,) = judge(replace(_GOOD, memory=growing), 2.0)
    assert "memory grew" in problem


@pytest.mark.slow
def test_honest_clients_are_served_beside_attackers(tmp_path: Path) -> None:
    problems = judge(soak(tmp_path, 2), 4.0)
    assert problems == []
