"""The pytest plugin: a fresh broker for every test that asks for one.

    @pytest.mark.kafka_topics("orders", partitions=3)
    @pytest.mark.kafka_settings(auto_create_topics_enable=False)
    def test_orders(kafka_broker):
        producer = Producer({"bootstrap.servers": kafka_broker.bootstrap})

`kafka_broker` is a `tailrace.Broker`, on a temporary directory and a port of its own, with all its faults.
`kafka_broker_factory(**settings)` makes as many as a test wants. All are closed when the test ends. A test suite that
has fixtures of these names keeps its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, TypeAlias

import pytest

if TYPE_CHECKING:
    # Nothing of the broker is loaded for tests that have none.
    from tailrace.embedded import Broker

BrokerFactory: TypeAlias = "Callable[..., Broker]"


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        "kafka_topics(*names, partitions=1, config=None): topics that kafka_broker has when the test starts",
    )
    config.addinivalue_line("markers", "kafka_settings(**settings): settings of kafka_broker, as of tailrace.Broker")


@pytest.fixture
def kafka_broker_factory() -> Iterator[BrokerFactory]:
    """Make brokers: kafka_broker_factory(num_partitions=3), started, and closed when the test ends."""
    from tailrace.embedded import Broker

    with ExitStack() as stack:

        def make(**settings: Any) -> Broker:
            return stack.enter_context(Broker(**settings))

        yield make


@pytest.fixture
def kafka_broker(request: pytest.FixtureRequest, kafka_broker_factory: BrokerFactory) -> Broker:
    """A broker of the test's own, with the topics and settings of its markers."""
    settings: dict[str, Any] = {}
    for mark in reversed(list(request.node.iter_markers("kafka_settings"))):  # the nearest one wins
        settings.update(mark.kwargs)
    broker = kafka_broker_factory(**settings)
    for mark in request.node.iter_markers("kafka_topics"):
        for name in mark.args:
            broker.create_topic(name, **mark.kwargs)
    return broker
