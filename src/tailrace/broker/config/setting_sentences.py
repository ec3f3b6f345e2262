"""One sentence for each setting that Kafka knows, for DescribeConfigs. They are in model/configs/sentences.json.

A broker setting that is the default of a topic or group setting shares the sentence of that one.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Final

from tailrace.broker.config.config_support import Support, support_of
from tailrace.metadata.image.image import ResourceType
from tailrace.model.configs import config_definitions
from tailrace.model.configs.config_definitions import definition, topic_synonyms

_KINDS: Final = {
    ResourceType.TOPIC: "topic",
    ResourceType.BROKER: "broker",
    ResourceType.GROUP: "group",
    ResourceType.CLIENT_METRICS: "client_metrics",
}
_UNITS: Final = ("hours", "minutes")
_NO_EFFECT: Final = "Tailrace does not have the part that this setting tunes, so the setting has no effect."
_NOT_SUPPORTED: Final = "Tailrace does not have this feature, so only the default value is accepted."


def sentence_of(resource_type: int, name: str) -> str | None:
    """Return the sentence for a setting; None for one that Kafka does not know."""
    kind = _KINDS.get(ResourceType(resource_type))
    if kind is None or name not in definition(kind):
        return None
    own = _sentences()[kind].get(name)
    return _of_broker(name) if own is None else own


def _of_broker(name: str) -> str:
    inherited = _inherited().get(name)
    if inherited is not None:
        kind, heir = inherited
        unit = name.rpartition(".")[2]
        given = f", in {unit}" if unit in _UNITS else ""
        return f"The default of {heir} for {kind}s{given}. {_sentences()[kind][heir]}"
    return _NOT_SUPPORTED if support_of(name) is Support.NOT_SUPPORTED else _NO_EFFECT


@cache
def _inherited() -> dict[str, tuple[str, str]]:
    """Return the kind and the name of the setting to which each broker setting gives the default."""
    topics = {broker: ("topic", topic) for topic, synonyms in topic_synonyms().items() for broker, _ in synonyms}
    groups = {key.synonym: ("group", key.name) for key in definition("group").values() if key.synonym is not None}
    return {**topics, **groups}


@cache
def _sentences() -> dict[str, dict[str, str]]:
    path = Path(config_definitions.__file__).with_name("sentences.json")
    found: dict[str, dict[str, str]] = json.loads(path.read_text())
    return found
