"""The pytest plugin: brokers for tests.

    @pytest.mark.kafka_topics("orders", partitions=3)
    @pytest.mark.kafka_settings(auto_create_topics_enable=False)
    def test_orders(kafka_broker):
        producer = Producer({"bootstrap.servers": kafka_broker.bootstrap})

    kafka_broker            a new `tailrace.Broker` for each test, on a temporary directory and a free port
    kafka_broker_factory    kafka_broker_factory(**settings) starts as many brokers as a test needs
    kafka_module_broker     one broker for the tests of a module; it is empty again after each test
    kafka_session_broker    one broker for all tests of a run; it is empty again after each test
    kafka_cluster           a new `tailrace.Cluster` for each test: several brokers and their controller
    kafka_broker_settings   the settings of all brokers outside of clusters; a test suite may override this fixture

Faults can be injected into each of them. All are closed at the end of their scope. Fixtures of the same names in a test
suite override these.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import pytest

if TYPE_CHECKING:
    # The broker is imported only for tests that use it.
    from tailrace.embedded.broker import Broker
    from tailrace.embedded.cluster import Cluster

BrokerFactory: TypeAlias = "Callable[..., Broker]"

_SHARED: Final = ("kafka_session_broker", "kafka_module_broker")
_MARKERS: Final = (
    "kafka_topics(*names, partitions=1, config=None): topics that the broker has when the test starts",
    "kafka_settings(**settings): settings of kafka_broker or kafka_cluster, as of tailrace.Broker",
    "kafka_cluster(brokers=3, controllers='tailrace'): the size of kafka_cluster; controllers may be Kafka's",
    "kafka_security(tls=True, users={}, mechanism='PLAIN', client_certificates=False): TLS and SASL of kafka_broker",
)


def pytest_configure(config: pytest.Config) -> None:
    for marker in _MARKERS:
        config.addinivalue_line("markers", marker)


@pytest.fixture(scope="session")
def kafka_broker_settings() -> Mapping[str, Any]:
    """Return the arguments of every `tailrace.Broker` of these fixtures. The default is none."""
    return {}


@pytest.fixture
def kafka_broker_factory(kafka_broker_settings: Mapping[str, Any]) -> Iterator[BrokerFactory]:
    """Return a function that starts brokers: kafka_broker_factory(num_partitions=3). They are closed after the test."""
    from tailrace.embedded.broker import Broker

    with ExitStack() as stack:

        def make(**settings: Any) -> Broker:
            return stack.enter_context(Broker(**{**kafka_broker_settings, **settings}))

        yield make


@pytest.fixture
def kafka_broker(request: pytest.FixtureRequest, kafka_broker_factory: BrokerFactory) -> Broker:
    """Return a new broker with the topics, settings and security of the test's markers."""
    settings = _settings(request)
    security = request.node.get_closest_marker("kafka_security")
    if security is not None:
        from tailrace.embedded.security import LocalSecurity

        settings["security"] = LocalSecurity(**security.kwargs)
    broker = kafka_broker_factory(**settings)
    _create_topics(request, broker)
    return broker


@pytest.fixture
def kafka_cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """Return a new cluster with the size, topics and settings of the test's markers."""
    if request.node.get_closest_marker("kafka_security") is not None:
        pytest.fail("kafka_security is only for kafka_broker: brokers of kafka_cluster are unsecured", pytrace=False)
    from tailrace.embedded.cluster import Cluster, ClusterUnavailable

    size = request.node.get_closest_marker("kafka_cluster")
    cluster = Cluster(**{**_settings(request), **(size.kwargs if size is not None else {})})
    try:
        cluster.start()
    except ClusterUnavailable as error:
        pytest.fail(f"kafka_cluster cannot start: {error}", pytrace=False)
    with cluster:
        _create_topics(request, cluster)
        yield cluster


def _settings(request: pytest.FixtureRequest) -> dict[str, Any]:
    """Return the settings of the test's markers. The closest marker overrides the others."""
    settings: dict[str, Any] = {}
    for mark in reversed(list(request.node.iter_markers("kafka_settings"))):
        settings.update(mark.kwargs)
    return settings


@pytest.fixture(scope="session")
def kafka_session_broker(kafka_broker_settings: Mapping[str, Any]) -> Iterator[Broker]:
    """Return the broker of this run. Each test that uses it finds it empty."""
    yield from _shared_broker(kafka_broker_settings)


@pytest.fixture(scope="module")
def kafka_module_broker(kafka_broker_settings: Mapping[str, Any]) -> Iterator[Broker]:
    """Return the broker of this module. Each test that uses it finds it empty."""
    yield from _shared_broker(kafka_broker_settings)


def _shared_broker(settings: Mapping[str, Any]) -> Iterator[Broker]:
    from tailrace.embedded.broker import Broker

    with Broker(**settings) as broker:
        yield broker


@pytest.fixture(autouse=True)
def _kafka_shared_brokers(request: pytest.FixtureRequest) -> Iterator[None]:
    """Prepare the shared brokers of a test before its other fixtures, and empty them after these have ended."""
    for name in _in_use(request):
        for mark in ("kafka_settings", "kafka_security"):
            if request.node.get_closest_marker(mark) is not None:
                pytest.fail(f"{mark} cannot change {name}, which other tests share: use kafka_broker", pytrace=False)
        _create_topics(request, request.getfixturevalue(name))
    yield
    for name in _in_use(request):  # including those that the test got by getfixturevalue
        request.getfixturevalue(name).reset()


def _in_use(request: pytest.FixtureRequest) -> list[str]:
    """Return the names of the shared brokers that a test uses and that its suite does not override."""
    names = [name for name in _SHARED if name in request.fixturenames]
    if not names:
        return []
    from tailrace.embedded.broker import Broker

    return [name for name in names if isinstance(request.getfixturevalue(name), Broker)]


def _create_topics(request: pytest.FixtureRequest, broker: Broker | Cluster) -> None:
    for mark in request.node.iter_markers("kafka_topics"):
        for name in mark.args:
            broker.create_topic(name, **mark.kwargs)
