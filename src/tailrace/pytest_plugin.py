"""The pytest plugin: a new broker for every test that uses its fixture.

    @pytest.mark.kafka_topics("orders", partitions=3)
    @pytest.mark.kafka_settings(auto_create_topics_enable=False)
    def test_orders(kafka_broker):
        producer = Producer({"bootstrap.servers": kafka_broker.bootstrap})

`kafka_broker` is a `tailrace.Broker` on a temporary directory and a free port; faults can be injected.
`kafka_broker_factory(**settings)` creates as many brokers as a test needs. All are closed when the test ends. Fixtures
of the same names in a test suite override these.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, TypeAlias

import pytest

if TYPE_CHECKING:
    # The broker is imported only for tests that use it.
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
    """Return a function that starts brokers: kafka_broker_factory(num_partitions=3). They are closed after the test."""
    from tailrace.embedded import Broker

    with ExitStack() as stack:

        def make(**settings: Any) -> Broker:
            return stack.enter_context(Broker(**settings))

        yield make


@pytest.fixture
def kafka_broker(request: pytest.FixtureRequest, kafka_broker_factory: BrokerFactory) -> Broker:
    """Return a new broker with the topics and settings of the test's markers."""
    settings: dict[str, Any] = {}
    for mark in reversed(list(request.node.iter_markers("kafka_settings"))):  # the closest marker overrides the others
        settings.update(mark.kwargs)
    broker = kafka_broker_factory(**settings)
    for mark in request.node.iter_markers("kafka_topics"):
        for name in mark.args:
            broker.create_topic(name, **mark.kwargs)
    return broker
