"""Each setting has a sentence in plain words."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tailrace.broker.config.config_support import Support, support_of
from tailrace.broker.config.setting_sentences import sentence_of
from tailrace.metadata.image.image import ResourceType
from tailrace.model.configs import config_definitions
from tailrace.model.configs.config_definitions import definition

KINDS = {
    ResourceType.TOPIC: "topic",
    ResourceType.BROKER: "broker",
    ResourceType.GROUP: "group",
    ResourceType.CLIENT_METRICS: "client_metrics",
}
FILE = Path(config_definitions.__file__).with_name("sentences.json")


@pytest.mark.parametrize("kind", KINDS)
def test_every_setting_has_sentences(kind: ResourceType) -> None:
    for name in definition(KINDS[kind]):
        text = sentence_of(kind, name)
        assert text is not None, name
        assert text.endswith("."), name
        assert text[0].isupper() or text.startswith("__"), name


def test_only_settings_that_work_have_a_sentence_of_their_own() -> None:
    for kind, sentences in json.loads(FILE.read_text()).items():
        assert set(sentences) <= set(definition(kind))
        if kind == "broker":
            assert {support_of(name) for name in sentences} == {Support.HONOURED}
    for name in definition("broker"):
        has_effect = "has no effect" not in str(sentence_of(ResourceType.BROKER, name))
        assert has_effect or support_of(name) is Support.NO_EFFECT, name


def test_a_default_of_topics_shares_the_sentence_of_the_topic_setting() -> None:
    own = sentence_of(ResourceType.TOPIC, "retention.ms")
    assert sentence_of(ResourceType.BROKER, "log.retention.ms") == f"The default of retention.ms for topics. {own}"
    hours = f"The default of retention.ms for topics, in hours. {own}"
    assert sentence_of(ResourceType.BROKER, "log.retention.hours") == hours


def test_an_unknown_setting_has_no_sentence() -> None:
    assert sentence_of(ResourceType.TOPIC, "no.such.setting") is None
    assert sentence_of(ResourceType.BROKER_LOGGER, "root") is None
