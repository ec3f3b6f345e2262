"""`bootstrap`: a cluster to talk to, once Apache Kafka and once our own broker; whoever tests a client uses it.

A test whose client cannot be had is skipped with the reason.
"""

from __future__ import annotations

import os
import re
from collections.abc import Generator, Iterator

import pytest

from tests.support.cache import Unavailable
from tests.support.kafka_broker import KafkaBroker
from tests.support.tailrace_process import TailraceProcess

# Short waits, as the real broker of the tests has them; topics are made by hand.
_OURS = ("-o", "auto.create.topics.enable=false")


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, object, object]:
    """A client that cannot be had here is no failure of ours, unless TAILRACE_REQUIRE_CLIENTS=1 says so."""
    try:
        return (yield)
    except Unavailable as why:
        if os.environ.get("TAILRACE_REQUIRE_CLIENTS") == "1":
            raise
        pytest.skip(str(why))


@pytest.fixture(scope="session", params=[pytest.param("kafka", marks=pytest.mark.kafka), "tailrace"])
def bootstrap(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Where a broker listens; shared by the tests of a worker, so each has topics of its own."""
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
    """A topic's name that no other test has."""
    return re.sub(r"[^A-Za-z0-9._-]", "-", request.node.name)[:200]
