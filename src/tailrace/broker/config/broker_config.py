"""BrokerConfig: typed view of server.properties.

Every key that Kafka 4.3 knows has its type, default and allowed values (`model/configs/config_definitions.py`) and is
honoured, without effect, or not supported (`config_support.py`). What is not allowed, or asks for something that we do
not do, is an InvalidConfig that names the key; what has no effect, and keys that nobody knows, are in `warnings`.

    config = BrokerConfig.parse(Path("server.properties").read_text())
    config = BrokerConfig.of(log_dirs=["/var/lib/tailrace"], port=9092)
    config.integer("socket.request.max.bytes"), config.listeners, config.log_dirs

A node is broker and controller in one, or a broker below other controllers (`role_config.py`). For one that is alone
and has no controller listener, the controller's address is that of the first listener on the next port, under the name
CONTROLLER: Kafka has to be told some, and finds itself there.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Final

from tailrace.broker.config.authorizer_config import CLASS_NAME, OWN_KEYS, authorizer_of
from tailrace.broker.config.config_support import Support, support_of
from tailrace.broker.config.listener_config import Listener, parse_listeners, parse_security_map
from tailrace.broker.config.listener_keys import check_listener_key, check_listener_names
from tailrace.broker.config.properties_file import MalformedProperties, parse_properties
from tailrace.broker.config.role_config import read_roles
from tailrace.broker.config.sasl_config import sasl_of_listener
from tailrace.metadata.decisions.delegation_tokens import TokenSettings
from tailrace.metadata.image.effective_config import ConfigSource, EffectiveConfigs
from tailrace.metadata.image.image import EMPTY_IMAGE, MetadataImage
from tailrace.metadata.image.registrations import Endpoint
from tailrace.metadata.storage.metadata_log_settings import MetadataLogSettings
from tailrace.model.configs.config_definitions import ConfigKey, Value, definition
from tailrace.model.configs.topic_settings import parse_topic_config, readable_topic_config
from tailrace.model.listener_settings import PREFIX
from tailrace.model.topic_config import InvalidConfig, TopicConfig

_log = logging.getLogger(__name__)

CONTROLLER: Final = "CONTROLLER"
_TOPIC_CONFIGS_MAX: Final = 1_000  # topics with different settings; a client can change one as often as it likes
_ANYWHERE: Final = ("", "0.0.0.0", "::")


class BrokerConfig:
    def __init__(self, settings: Mapping[str, str]) -> None:
        self.static: dict[str, str] = dict(settings)
        self.warnings: list[str] = []
        keys = definition("broker")
        self._values: dict[str, Value] = {}
        # Most topics have the same configuration: by what is set for a topic, while the broker's own is this.
        self._topic_configs: dict[tuple[tuple[str, str], ...], TopicConfig] = {}
        self._topic_layers: list[Mapping[str, str]] = []
        # Two names for the same, of which Kafka shows both.
        self.static.setdefault("node.id", self.static.get("broker.id", "1"))
        self.static.setdefault("broker.id", self.static["node.id"])
        for name, text in self.static.items():
            key = keys.get(name)
            if key is None or key.only_dynamic:
                self._unknown(name)
                continue
            value = self._values[name] = key.parse(text)
            self._check_support(key, value)
        self.effective = EffectiveConfigs(self.static, self.node_id)
        self._read_listeners()
        self._check_roles()
        self._check_times()
        authorizer_of(self.static)

    @classmethod
    def parse(cls, text: str) -> BrokerConfig:
        """From the text of a server.properties."""
        try:
            return cls(parse_properties(text))
        except MalformedProperties as error:
            raise InvalidConfig(str(error)) from error

    @classmethod
    def of(
        cls, *, log_dirs: Sequence[str], port: int, host: str = "127.0.0.1", settings: Mapping[str, str] | None = None
    ) -> BrokerConfig:
        """One node on one port, with settings that win over these."""
        shown = f"[{host}]" if ":" in host else host
        made = {"node.id": "1", "listeners": f"PLAINTEXT://{shown}:{port}", "log.dirs": ",".join(log_dirs)}
        return cls({**made, **(settings or {})})

    # Values

    def value(self, name: str) -> Value:
        """What a key is set to, or its default."""
        if name not in self._values:
            key = definition("broker")[name]
            self._values[name] = key.parse(key.default) if key.default is not None else None
        return self._values[name]

    def integer(self, name: str) -> int:
        value = self.value(name)
        assert isinstance(value, int), f"{name} is no number, or has none"
        return value

    def number(self, name: str) -> float:
        value = self.value(name)
        assert isinstance(value, int | float), f"{name} is no number, or has none"
        return value

    def flag(self, name: str) -> bool:
        value = self.value(name)
        assert isinstance(value, bool), f"{name} is neither true nor false"
        return value

    def text(self, name: str) -> str | None:
        value = self.value(name)
        assert value is None or isinstance(value, str), f"{name} is no text"
        return value

    def names(self, name: str) -> tuple[str, ...]:
        value = self.value(name)
        assert value is None or isinstance(value, tuple), f"{name} is no list"
        return value or ()

    def current(self, name: str, image: MetadataImage) -> Value:
        """As `value`, but what was changed while brokers ran counts first."""
        for source, settings in self.effective.broker_layers(image):
            if source != ConfigSource.STATIC_BROKER_CONFIG and name in settings:
                return definition("broker")[name].readable(settings[name])
        return self.value(name)

    def current_integer(self, name: str, image: MetadataImage) -> int:
        value = self.current(name, image)
        assert isinstance(value, int), f"{name} is no number, or has none"
        return value

    # What is often asked for

    @property
    def node_id(self) -> int:
        return self.integer("node.id")

    @property
    def rack(self) -> str | None:
        return self.text("broker.rack")

    @property
    def log_dirs(self) -> tuple[str, ...]:
        return self.names("log.dirs") or self.names("log.dir")

    @property
    def metadata_log_dir(self) -> str:
        return self.text("metadata.log.dir") or self.log_dirs[0]

    @property
    def metadata_log(self) -> MetadataLogSettings:
        small = self.value("internal.metadata.log.segment.bytes")
        assert small is None or isinstance(small, int)
        return MetadataLogSettings(
            segment_bytes=self.integer("metadata.log.segment.bytes"),
            segment_ms=self.integer("metadata.log.segment.ms"),
            snapshot_after_bytes=self.integer("metadata.log.max.record.bytes.between.snapshots"),
            snapshot_after_ms=self.integer("metadata.log.max.snapshot.interval.ms"),
            retention_bytes=self.integer("metadata.max.retention.bytes"),
            retention_ms=self.integer("metadata.max.retention.ms"),
            internal_segment_bytes=small,
        )

    @property
    def tokens(self) -> TokenSettings:
        return TokenSettings.of(self.static)

    def endpoints(
        self, bound: Mapping[str, int] | None = None, default_host: str = "localhost"
    ) -> tuple[Endpoint, ...]:
        """What is registered as this broker's addresses; `bound` has the ports that listeners on port 0 got."""
        return tuple(_endpoint(one, bound or {}, default_host) for one in self.advertised_listeners)

    def controller_endpoints(
        self, bound: Mapping[str, int] | None = None, default_host: str = "localhost"
    ) -> tuple[Endpoint, ...]:
        if self._controller_listeners:
            return tuple(_endpoint(one, bound or {}, default_host) for one in self._controller_listeners)
        first = _endpoint(self.advertised_listeners[0], bound or {}, default_host)
        host = first.host if self.listeners[0].host in _ANYWHERE else self.listeners[0].host
        port = _endpoint(self.listeners[0], bound or {}, default_host).port + 1
        return (Endpoint(CONTROLLER, host, port if port <= 65535 else 1),)

    # Topics

    def topic_config(self, image: MetadataImage, topic: str) -> TopicConfig:
        """What counts for a topic; keys in the metadata that we do not know are left alone."""
        known = definition("topic")
        overrides = {name: text for name, text in image.topic_config(topic).items() if name in known}
        layers = [settings for _, settings in self.effective.broker_layers(image)]
        if layers != self._topic_layers:
            self._topic_layers = layers
            self._topic_configs.clear()
        chosen = tuple(sorted(overrides.items()))
        found = self._topic_configs.get(chosen)
        if found is None:
            found, problems = readable_topic_config(self.effective.topic_settings(image, overrides))
            for problem in problems:
                _log.warning("a setting of topic %s has no effect: %s", topic, problem)
            if len(self._topic_configs) >= _TOPIC_CONFIGS_MAX:
                self._topic_configs.clear()
            self._topic_configs[chosen] = found
        return found

    # Reading

    def _unknown(self, name: str) -> None:
        if name.startswith(PREFIX):
            check_listener_key(name, self.static[name])
            return
        if name in OWN_KEYS:
            if not self.static.get(CLASS_NAME):
                self.warnings.append(f"{name} has no effect without {CLASS_NAME}")
            return
        self.warnings.append(f"{name} is no configuration that is known")

    def _check_support(self, key: ConfigKey, value: Value) -> None:
        default = key.parse(key.default) if key.default is not None else None
        if value == default or key.required:
            return
        support = support_of(key.name)
        if support is Support.NOT_SUPPORTED:
            raise InvalidConfig(f"{key.name} is not supported: it can only have its default, {key.default}")
        if support is Support.NO_EFFECT:
            self.warnings.append(f"{key.name} has no effect")

    def _read_listeners(self) -> None:
        names = [name.upper() for name in self.names("controller.listener.names")]
        security = parse_security_map(self.text("listener.security.protocol.map") or "")
        if "listener.security.protocol.map" not in self.static:
            for name in names:
                security.setdefault(name, "PLAINTEXT")
        bound = parse_listeners(self.names("listeners"), security, "listeners")
        told = self.names("advertised.listeners")
        advertised = parse_listeners(told, security, "advertised.listeners", distinct_ports=False) if told else bound
        self.listeners = [one for one in bound if one.name not in names]
        self.advertised_listeners = [one for one in advertised if one.name not in names]
        self._controller_listeners = [one for one in advertised if one.name in names] or [
            one for one in bound if one.name in names
        ]
        if not self.listeners:
            raise InvalidConfig("listeners: there is none for clients")
        for one in self.advertised_listeners:
            if told and one.host in _ANYWHERE:
                raise InvalidConfig(f"advertised.listeners: nobody can connect to {one}")
            if one.name not in {other.name for other in self.listeners}:
                raise InvalidConfig(f"advertised.listeners: {one.name} is not among the listeners")
        check_listener_names(self.static, {one.name for one in bound} | set(names))
        self.sasl = {
            one.name: sasl_of_listener(self.static, one.name)
            for one in self.listeners
            if one.security_protocol.startswith("SASL_")
        }
        for settings in self.sasl.values():
            self.warnings += settings.oauth.warnings if settings.oauth is not None else ()
        self.inter_broker_listener = self._inter_broker_listener()

    def _inter_broker_listener(self) -> Listener:
        name = self.text("inter.broker.listener.name")
        if name is not None and "security.inter.broker.protocol" in self.static:
            raise InvalidConfig("only one of inter.broker.listener.name and security.inter.broker.protocol can be set")
        wanted = (name or self.text("security.inter.broker.protocol") or "PLAINTEXT").upper()
        for one in self.advertised_listeners:
            if one.name == wanted:
                return one
        if name is None and "security.inter.broker.protocol" not in self.static:
            return self.advertised_listeners[0]  # there is nobody to talk to
        raise InvalidConfig(f"inter.broker.listener.name: {wanted} is not among the advertised listeners")

    def _check_roles(self) -> None:
        names = [name.upper() for name in self.names("controller.listener.names")]
        self.roles = read_roles(
            self.names("process.roles"),
            self.node_id,
            self.names("controller.quorum.voters"),
            self.names("controller.quorum.bootstrap.servers"),
            names,
            parse_security_map(self.text("listener.security.protocol.map") or ""),
        )
        if self.roles.is_broker_only and self._controller_listeners:
            raise InvalidConfig("controller.listener.names: a broker that is no controller must not listen there")
        broker_id = self.value("broker.id")
        if broker_id not in (-1, self.node_id):
            raise InvalidConfig(f"broker.id {broker_id} differs from node.id {self.node_id}")
        if not self.log_dirs or "" in self.log_dirs:
            raise InvalidConfig("log.dirs: at least one directory is needed")

    def _check_times(self) -> None:
        """What is wrong with keys taken together."""
        config = parse_topic_config(self.effective.topic_settings(EMPTY_IMAGE, {}))
        if config.retention_ms == 0:
            raise InvalidConfig("log.retention.ms must be -1 or more than 0")
        limit = self.integer("queued.max.request.bytes")
        if 0 < limit < self.integer("socket.request.max.bytes"):
            raise InvalidConfig("queued.max.request.bytes must not be less than socket.request.max.bytes")


def _endpoint(listener: Listener, bound: Mapping[str, int], default_host: str) -> Endpoint:
    host = default_host if listener.host in _ANYWHERE else listener.host
    port = bound.get(listener.name, listener.port) if listener.port <= 0 else listener.port
    return Endpoint(listener.name, host, port, listener.security_code)
