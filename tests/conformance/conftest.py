"""`bootstrap`: the address of a cluster for client tests, once Apache Kafka and once Tailrace.

A test whose client is not available is skipped with the reason.
"""

from __future__ import annotations

import os
import re
from collections.abc import Generator, Iterator

import pytest

from tests.support.cache import Unavailable
from tests.support.kafka_broker import KafkaBroker
from tests.support.tailrace_process import TailraceProcess

# Short waits, as at the tests' Kafka; topics are created explicitly.
_OURS = ("-o", "auto.create.topics.enable=false")


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, object, object]:
    """Skip a test whose client is not available, unless TAILRACE_REQUIRE_CLIENTS=1 is set."""
    try:
        return (yield)
    except Unavailable as why:
        if os.environ.get("TAILRACE_REQUIRE_CLIENTS") == "1":
            raise
        pytest.skip(str(why))


@pytest.fixture(scope="session", params=[pytest.param("kafka", marks=pytest.mark.kafka), "tailrace"])
def bootstrap(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Yield the address of a broker. The tests of a worker share it, so each test uses its own topics."""
    directory = tmp_path_factory.mktemp(request.param)
    broker: KafkaBroker | TailraceProcess
    if request.param == "kafka":
        broker = KafkaBroker(request.getfixturevalue("kafka"), directory)
    else:
        broker = TailraceProcess(directory / "data", *_OURS)
    with broker:
        yield broker.bootstrap


@pytest.fixture
def topic(request: pytest.FixtureRequest) -> str:
    """Return a topic name that no other test uses."""
    return re.sub(r"[^A-Za-z0-9._-]", "-", request.node.name)[:200]
