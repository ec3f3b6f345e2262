"""The pytest plugin, used by small test suites."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest_plugins = ("pytester",)
ORDINARY_TESTS = Path(__file__).parents[1] / "support" / "ordinary_tests.py"

TESTS = """
    import pytest
    from tests.support.raw_client import RawClient
    from tailrace.protocol.messages import MetadataRequest

    def topics(broker):
        with RawClient(broker.bootstrap) as client:
            answer = client.ask(MetadataRequest(topics=None), 12)
        return {topic.name: len(topic.partitions) for topic in answer.topics}

    @pytest.mark.kafka_topics("orders", "payments", partitions=3)
    @pytest.mark.kafka_topics("audit", config={"cleanup.policy": "compact"})
    def test_topics(kafka_broker):
        assert topics(kafka_broker) == {"orders": 3, "payments": 3, "audit": 1}

    def test_fresh(kafka_broker):
        assert topics(kafka_broker) == {}

    @pytest.mark.kafka_settings(num_partitions=7)
    def test_settings(kafka_broker):
        kafka_broker.create_topic("t", partitions=-1)
        assert topics(kafka_broker) == {"t": 7}

    def test_factory(kafka_broker_factory):
        first, second = kafka_broker_factory(), kafka_broker_factory(num_partitions=2)
        assert first.port != second.port
        second.create_topic("t", partitions=-1)
        assert (topics(first), topics(second)) == ({}, {"t": 2})
"""

SHARED_TESTS = """
    import pytest
    from tests.support.raw_client import RawClient
    from tailrace.protocol.messages import MetadataRequest

    ports = set()

    def topics(broker):
        with RawClient(broker.bootstrap) as client:
            answer = client.ask(MetadataRequest(topics=None), 12)
        return {topic.name: len(topic.partitions) for topic in answer.topics}

    @pytest.fixture
    def seen(BROKER):
        return topics(BROKER)

    @pytest.mark.kafka_topics("orders", partitions=3)
    def test_topics_are_created_before_other_fixtures(seen, BROKER):
        assert seen == {"orders": 3}
        ports.add(BROKER.port)

    def test_topics_of_another_test_are_gone(BROKER):
        assert topics(BROKER) == {}
        ports.add(BROKER.port)
        BROKER.fail("Metadata", "UNKNOWN_SERVER_ERROR")

    def test_faults_of_another_test_are_gone(BROKER):
        assert topics(BROKER) == {}
        BROKER.create_topic("left")
        BROKER.crash()

    def test_a_crash_in_another_test_is_repaired(BROKER):
        assert topics(BROKER) == {}
        ports.add(BROKER.port)
        assert len(ports) == 1
        BROKER.create_topic("left")

    def test_a_broker_that_is_got_by_name_is_empty_too(request):
        broker = request.getfixturevalue("BROKER")
        assert topics(broker) == {}
        broker.create_topic("left")

    def test_settings_of_the_suite_apply(BROKER):
        assert topics(BROKER) == {}
        BROKER.create_topic("t", partitions=-1)
        assert topics(BROKER) == {"t": 5}

    @pytest.mark.kafka_settings(num_partitions=7)
    def test_settings_of_a_test_are_refused(BROKER):
        raise AssertionError("this must not run")
"""
SECURED_TESTS = """
    import pytest
    from confluent_kafka.admin import AdminClient

    @pytest.mark.kafka_topics("orders")
    @pytest.mark.kafka_security(users={"alice": "secret"})
    def test_login(kafka_broker):
        admin = AdminClient(kafka_broker.client_settings(user="alice"))
        assert list(admin.list_topics(timeout=20).topics) == ["orders"]
"""
SETTINGS = """
    import pytest

    @pytest.fixture(scope="session")
    def kafka_broker_settings():
        return {"num_partitions": 5}
"""


@pytest.fixture
def suite(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> pytest.Pytester:
    # The plugin is loaded once, by name, also if the installed package registers it.
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    root = request.config.rootpath
    monkeypatch.setenv("PYTHONPATH", f"{root / 'src'}:{root}")
    return pytester


def test_each_test_gets_its_own_broker(suite: pytest.Pytester) -> None:
    suite.makepyfile(TESTS)
    result = suite.runpytest_subprocess("-p", "tailrace.pytest_plugin", "--strict-markers")
    result.assert_outcomes(passed=4)


@pytest.mark.parametrize("fixture", ["kafka_session_broker", "kafka_module_broker"])
def test_a_shared_broker_is_empty_for_each_test(suite: pytest.Pytester, fixture: str) -> None:
    suite.makeconftest(SETTINGS)
    suite.makepyfile(SHARED_TESTS.replace("BROKER", fixture))
    result = suite.runpytest_subprocess("-p", "tailrace.pytest_plugin", "--strict-markers")
    result.assert_outcomes(passed=6, errors=1)
    result.stdout.fnmatch_lines([f"*kafka_settings cannot change {fixture}, which other tests share*"])


@pytest.mark.parametrize("fixture", ["kafka_broker", "kafka_session_broker"])
def test_twenty_ordinary_tests_pass(suite: pytest.Pytester, fixture: str) -> None:
    suite.makepyfile(test_ordinary=ORDINARY_TESTS.read_text().replace("kafka_broker", fixture))
    result = suite.runpytest_subprocess("-p", "tailrace.pytest_plugin", "--strict-markers")
    result.assert_outcomes(passed=20)


def test_a_marker_secures_the_broker(suite: pytest.Pytester) -> None:
    suite.makepyfile(SECURED_TESTS)
    suite.runpytest_subprocess("-p", "tailrace.pytest_plugin", "--strict-markers").assert_outcomes(passed=1)


def test_a_fixture_of_the_suite_overrides_the_plugin(suite: pytest.Pytester) -> None:
    suite.makeconftest("import pytest\n@pytest.fixture\ndef kafka_broker():\n    return 'mine'\n")
    suite.makepyfile("def test_mine(kafka_broker):\n    assert kafka_broker == 'mine'\n")
    suite.runpytest_subprocess("-p", "tailrace.pytest_plugin").assert_outcomes(passed=1)


def test_the_broker_is_imported_only_by_tests_that_use_it(suite: pytest.Pytester) -> None:
    suite.makepyfile("import sys\ndef test_light():\n    assert 'tailrace.broker.broker' not in sys.modules\n")
    suite.runpytest_subprocess("-p", "tailrace.pytest_plugin").assert_outcomes(passed=1)
