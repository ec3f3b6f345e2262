"""The time that the pytest plugin takes, on a quiet machine: the best of three runs."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

pytest_plugins = ("pytester",)
pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[2]
ORDINARY_TESTS = ROOT / "tests" / "support" / "ordinary_tests.py"
ORDINARY_S = 8.0  # of twenty tests, with the start of pytest and the imports of three client libraries
SHARED_TEST_S = 0.005
EMPTY_TESTS = 400


@pytest.fixture(autouse=True)
def quiet_machine() -> None:
    load, cores = os.getloadavg()[0], os.cpu_count() or 1
    if load > cores / 2:
        pytest.skip(f"the machine is busy: its load is {load:.1f} with {cores} cores")


@pytest.fixture
def suite(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]))
    return pytester


def best_s(suite: pytest.Pytester, passed: int) -> float:
    times = []
    for _ in range(3):
        begun_s = time.perf_counter()
        result = suite.runpytest_subprocess("-p", "tailrace.pytest_plugin")
        times.append(time.perf_counter() - begun_s)
        result.assert_outcomes(passed=passed)
    return min(times)


@pytest.mark.parametrize("fixture", ["kafka_broker", "kafka_session_broker"])
def test_twenty_ordinary_tests_take_less_than_eight_seconds(suite: pytest.Pytester, fixture: str) -> None:
    suite.makepyfile(test_ordinary=ORDINARY_TESTS.read_text().replace("kafka_broker", fixture))
    taken_s = best_s(suite, 20)
    print(f"20 tests with {fixture}: {taken_s:.1f} s")
    assert taken_s < ORDINARY_S


def test_a_shared_broker_costs_an_empty_test_less_than_five_milliseconds(suite: pytest.Pytester) -> None:
    taken_s = {}
    for fixture in ("kafka_session_broker", "tmp_path_factory"):
        suite.makepyfile(
            test_empty=f"""
            import pytest

            def test_first(kafka_session_broker):
                pass

            @pytest.mark.parametrize("number", range({EMPTY_TESTS}))
            def test_empty({fixture}, number):
                pass
            """
        )
        taken_s[fixture] = best_s(suite, EMPTY_TESTS + 1)
    cost_s = (taken_s["kafka_session_broker"] - taken_s["tmp_path_factory"]) / EMPTY_TESTS
    print(f"an empty test with kafka_session_broker: {cost_s * 1000:.1f} ms more than one without")
    assert cost_s < SHARED_TEST_S
