"""BrokerConfig: typed view of server.properties.

Every key of Kafka 4.3 has its type, default and allowed values (`model/configs/config_definitions.py`). It is honoured,
has no effect, or is not supported (`config_support.py`). A value that is not allowed or not supported raises
InvalidConfig with the key's name. Keys without effect and unknown keys are listed in `warnings`.

    config = BrokerConfig.parse(Path("server.properties").read_text())
    config = BrokerConfig.of(log_dirs=["/var/lib/tailrace"], port=9092)
    config.integer("socket.request.max.bytes"), config.listeners, config.log_dirs

A node is broker and controller in one, or a broker with separate controllers (`role_config.py`). The metadata must
contain an address of the controller. If a node that is its own controller has no controller listener, that address has
the name CONTROLLER, the host of the first listener, and the port after it.
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
from tailrace.broker.config.remote_config import ENABLE, RemoteConfig, is_enabled, prefixes
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
_TOPIC_CONFIGS_MAX: Final = 1_000  # distinct topic configurations in the cache; clients can create any number of them
_PATH_BYTES_MAX: Final = 4_000  # the names of files are added
_PATH_PARTS_MAX: Final = 200
_ANYWHERE: Final = ("", "0.0.0.0", "::")


class BrokerConfig:
    def __init__(self, settings: Mapping[str, str]) -> None:
        self.static: dict[str, str] = dict(settings)
        self.warnings: list[str] = []
        keys = definition("broker")
        self._values: dict[str, Value] = {}
        # A cache, since most topics have the same configuration: by the topic's own settings. It is valid for the
        # broker settings in `_topic_layers`.
        self._topic_configs: dict[tuple[tuple[str, str], ...], TopicConfig] = {}
        self._topic_layers: list[Mapping[str, str]] = []
        # broker.id and node.id are the same setting, and Kafka shows both.
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
        self.remote = RemoteConfig(self) if is_enabled(self) else None  # tiered storage
        authorizer_of(self.static)

    @classmethod
    def parse(cls, text: str) -> BrokerConfig:
        """Parse the text of a server.properties file."""
        try:
            return cls(parse_properties(text))
        except MalformedProperties as error:
            raise InvalidConfig(str(error)) from error

    @classmethod
    def of(
        cls, *, log_dirs: Sequence[str], port: int, host: str = "127.0.0.1", settings: Mapping[str, str] | None = None
    ) -> BrokerConfig:
        """Return the configuration of one node with one listener. `settings` override the other arguments."""
        shown = f"[{host}]" if ":" in host else host
        made = {"node.id": "1", "listeners": f"PLAINTEXT://{shown}:{port}", "log.dirs": ",".join(log_dirs)}
        return cls({**made, **(settings or {})})

    # Values

    def value(self, name: str) -> Value:
        """Return the value of a key, or its default."""
        if name not in self._values:
            key = definition("broker")[name]
            self._values[name] = key.parse(key.default) if key.default is not None else None
        return self._values[name]

    def integer(self, name: str) -> int:
        value = self.value(name)
        assert isinstance(value, int), f"{name} is not a number, or has no value"
        return value

    def number(self, name: str) -> float:
        value = self.value(name)
        assert isinstance(value, int | float), f"{name} is not a number, or has no value"
        return value

    def flag(self, name: str) -> bool:
        value = self.value(name)
        assert isinstance(value, bool), f"{name} is neither true nor false"
        return value

    def text(self, name: str) -> str | None:
        value = self.value(name)
        assert value is None or isinstance(value, str), f"{name} is not a string"
        return value

    def names(self, name: str) -> tuple[str, ...]:
        value = self.value(name)
        assert value is None or isinstance(value, tuple), f"{name} is not a list"
        return value or ()

    def current(self, name: str, image: MetadataImage) -> Value:
        """Like `value`, but settings that were changed at run time take precedence."""
        for source, settings in self.effective.broker_layers(image):
            if source != ConfigSource.STATIC_BROKER_CONFIG and name in settings:
                return definition("broker")[name].parse_or_default(settings[name])
        return self.value(name)

    def current_integer(self, name: str, image: MetadataImage) -> int:
        value = self.current(name, image)
        assert isinstance(value, int), f"{name} is not a number, or has no value"
        return value

    # Frequently used values

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
        """Return the addresses that this broker registers. `bound` has the actual ports of listeners on port 0."""
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
        """Return the effective configuration of a topic. Unknown keys in the metadata are ignored."""
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
        if name.startswith(prefixes(self)):
            if not is_enabled(self):
                self.warnings.append(f"{name} has no effect without {ENABLE}")
            return
        if name in OWN_KEYS:
            if not self.static.get(CLASS_NAME):
                self.warnings.append(f"{name} has no effect without {CLASS_NAME}")
            return
        self.warnings.append(f"{name} is not a known setting")

    def _check_support(self, key: ConfigKey, value: Value) -> None:
        default = key.parse(key.default) if key.default is not None else None
        if value == default or key.required:
            return
        support = support_of(key.name)
        if support is Support.NOT_SUPPORTED:
            raise InvalidConfig(f"{key.name} is not supported: remove it, or set it to its default, {key.default}")
        if support is Support.NO_EFFECT:
            self.warnings.append(f"{key.name} has no effect")

    def _read_listeners(self) -> None:
        names = [name.upper() for name in self.names("controller.listener.names")]
        security = parse_security_map(self.text("listener.security.protocol.map") or "")
        if "listener.security.protocol.map" not in self.static:
            for name in names:
                security.setdefault(name, "PLAINTEXT")
        bound = parse_listeners(self.names("listeners"), security, "listeners")
        given = self.names("advertised.listeners")
        advertised = parse_listeners(given, security, "advertised.listeners", distinct_ports=False) if given else bound
        self.listeners = [one for one in bound if one.name not in names]
        self.advertised_listeners = [one for one in advertised if one.name not in names]
        self.controller_listeners = [one for one in bound if one.name in names]  # where this node is a controller
        self._controller_listeners = [one for one in advertised if one.name in names] or self.controller_listeners
        is_controller_only = list(self.names("process.roles")) == ["controller"]
        if is_controller_only and self.listeners:
            raise InvalidConfig(
                f"listeners: {self.listeners[0].name} is not named in controller.listener.names, and a node with "
                "process.roles=controller has no other listeners"
            )
        if not self.listeners and not is_controller_only:
            raise InvalidConfig("listeners: at least one listener for clients is needed; all are controller listeners")
        for one in self.advertised_listeners:
            if given and one.host in _ANYWHERE:
                raise InvalidConfig(f"advertised.listeners: clients cannot connect to {one}; set a host name")
            if one.name not in {other.name for other in self.listeners}:
                raise InvalidConfig(f"advertised.listeners: {one.name} is not among the listeners")
        # Nodes of a cluster may share settings, so a listener of other nodes is one that the map names.
        check_listener_names(self.static, {one.name for one in bound} | set(names) | set(security))
        self.sasl = {
            one.name: sasl_of_listener(self.static, one.name)
            for one in (*self.listeners, *self.controller_listeners)
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
        if not self.listeners:
            return self._controller_listeners[0]  # a controller without a broker connects to nobody
        for one in self.advertised_listeners:
            if one.name == wanted:
                return one
        if name is None and "security.inter.broker.protocol" not in self.static:
            return self.advertised_listeners[0]  # the default protocol has no listener, and none was chosen
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
            listens=bool(self.controller_listeners),
        )
        if self.roles.is_broker_only and self._controller_listeners:
            raise InvalidConfig(
                f"controller.listener.names: {self._controller_listeners[0].name} is among the listeners, "
                "but a node with process.roles=broker must not listen there; remove it from listeners"
            )
        broker_id = self.value("broker.id")
        if broker_id not in (-1, self.node_id):
            raise InvalidConfig(f"broker.id {broker_id} differs from node.id {self.node_id}")
        if not self.log_dirs or "" in self.log_dirs:
            raise InvalidConfig("log.dirs: at least one directory is needed")
        for path in (*self.log_dirs, self.metadata_log_dir):
            if not _is_path(path):
                raise InvalidConfig(
                    f"log.dirs: {path[:80]!r} is not a path: it has at most {_PATH_BYTES_MAX} bytes and "
                    f"{_PATH_PARTS_MAX} parts, and no NUL"
                )

    def _check_times(self) -> None:
        """Raise InvalidConfig if settings contradict each other."""
        config = parse_topic_config(self.effective.topic_settings(EMPTY_IMAGE, {}))
        if config.retention_ms == 0:
            raise InvalidConfig("log.retention.ms is 0; it must be -1 (no limit) or more than 0")
        limit = self.integer("queued.max.request.bytes")
        if 0 < limit < self.integer("socket.request.max.bytes"):
            raise InvalidConfig(
                f"queued.max.request.bytes is {limit}; it must not be less than socket.request.max.bytes, "
                f"{self.integer('socket.request.max.bytes')}"
            )


def _endpoint(listener: Listener, bound: Mapping[str, int], default_host: str) -> Endpoint:
    host = default_host if listener.host in _ANYWHERE else listener.host
    port = bound.get(listener.name, listener.port) if listener.port <= 0 else listener.port
    return Endpoint(listener.name, host, port, listener.security_code)


def _is_path(text: str) -> bool:
    """Return True if the system may have a folder of that name."""
    try:
        size = len(text.encode("utf-8", "surrogateescape"))
    except UnicodeEncodeError:
        return False
    return "\0" not in text and size <= _PATH_BYTES_MAX and text.count("/") <= _PATH_PARTS_MAX
