"""The pytest plugin, used by small test suites."""

from __future__ import annotations

import pytest

pytest_plugins = ("pytester",)

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


@pytest.fixture
def suite(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> pytest.Pytester:
    # The plugin is loaded once, by name, also if the installed package registers it.
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("PYTHONPATH", str(request.config.rootpath))
    return pytester


def test_each_test_gets_its_own_broker(suite: pytest.Pytester) -> None:
    suite.makepyfile(TESTS)
    result = suite.runpytest_subprocess("-p", "tailrace.pytest_plugin", "--strict-markers")
    result.assert_outcomes(passed=4)


def test_a_fixture_of_the_suite_overrides_the_plugin(suite: pytest.Pytester) -> None:
    suite.makeconftest("import pytest\n@pytest.fixture\ndef kafka_broker():\n    return 'mine'\n")
    suite.makepyfile("def test_mine(kafka_broker):\n    assert kafka_broker == 'mine'\n")
    suite.runpytest_subprocess("-p", "tailrace.pytest_plugin").assert_outcomes(passed=1)


def test_the_broker_is_imported_only_by_tests_that_use_it(suite: pytest.Pytester) -> None:
    suite.makepyfile("import sys\ndef test_light():\n    assert 'tailrace.broker.broker' not in sys.modules\n")
    suite.runpytest_subprocess("-p", "tailrace.pytest_plugin").assert_outcomes(passed=1)
