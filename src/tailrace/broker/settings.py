"""BrokerSettings: the broker's own configuration, typed, under Kafka's names."""

from __future__ import annotations

from collections.abc import Mapping

from tailrace.metadata.config_definitions import definition


class BrokerSettings:
    """What `server.properties` says, and Kafka's defaults for the rest."""

    def __init__(self, static: Mapping[str, str]) -> None:
        self.static = dict(static)

    def value(self, name: str) -> object:
        key = definition("broker")[name]
        return key.parse(self.static.get(name, key.default))

    def integer(self, name: str) -> int:
        value = self.value(name)
        assert isinstance(value, int), name
        return value

    def is_on(self, name: str) -> bool:
        return bool(self.value(name))

    def texts(self, name: str) -> list[str]:
        value = self.static.get(name) or ""
        return [one.strip() for one in value.split(",") if one.strip()]
