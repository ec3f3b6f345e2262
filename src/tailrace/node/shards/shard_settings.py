"""The settings of each shard, made from those of one node.

Shard 1 is broker and controller, the others are brokers below it. The node id and the ports of shard N are those of the
first shard plus N - 1. Its data is in the folder shardN of each log directory.

Shards connect to each other through two listeners on the loopback interface, SHARDS and SHARD_CONTROLLER. Other users
of the machine can reach them too, so both need a password. The parent draws name and password at every start and passes
them through a pipe, so they are in no file. The parent also holds the sockets (`shard_sockets.py`), so nobody else can
listen there while a shard is restarted.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from tailrace.log.directories.shards_file import shard_folder
from tailrace.model.listener_settings import SHARDS_LISTENER
from tailrace.model.topic_config import InvalidConfig
from tailrace.server.connections.endpoints import PORT_MAX, PROTOCOLS, Endpoint, parse_endpoints

SHARDS_KEY: Final = "tailrace.shards"
CONTROLLER: Final = "SHARD_CONTROLLER"
LOOPBACK: Final = "127.0.0.1"
SHARDS_MAX: Final = 256
_MECHANISM: Final = "PLAIN"
_LOGIN_MODULE: Final = "org.apache.kafka.common.security.plain.PlainLoginModule"
# Settings of one node that the shards get from here instead.
_REPLACED: Final = (
    "process.roles", "node.id", "broker.id", "listeners", "advertised.listeners", "log.dir", "log.dirs",
    "metadata.log.dir", "controller.listener.names", "controller.quorum.bootstrap.servers",
    "controller.quorum.voters", "inter.broker.listener.name", "security.inter.broker.protocol", SHARDS_KEY,
    "tailrace.metrics.port", "tailrace.metrics.host",
)  # fmt: skip
# A copy on another shard of the same machine protects from nothing, so topics have one replica.
_DEFAULTS: Final = {
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
}


class Login(NamedTuple):
    """Name and password with which the shards of one start log in to each other."""

    user: str
    password: str

    @classmethod
    def draw(cls) -> Login:
        return cls(f"tailrace-shard-{secrets.token_hex(16)}", secrets.token_hex(32))

    def jaas(self) -> str:
        known = f'username="{self.user}" password="{self.password}" user_{self.user}="{self.password}"'
        return f"{_LOGIN_MODULE} required {known};"


def check_shardable(properties: Mapping[str, str], count: int) -> None:
    """Raise InvalidConfig if a node with these settings cannot have several shards."""
    if not 1 <= count <= SHARDS_MAX:
        raise InvalidConfig(f"{SHARDS_KEY}: {count} is not between 1 and {SHARDS_MAX}")
    roles = {role.strip() for role in properties.get("process.roles", "broker,controller").split(",")}
    if count > 1 and roles != {"broker", "controller"}:
        raise InvalidConfig(
            "process.roles: a node with several shards is broker and controller in one; remove process.roles, "
            "or start it without --shards"
        )


def first_node_id(properties: Mapping[str, str]) -> int:
    text = properties.get("node.id") or properties.get("broker.id") or "1"
    if not text.isdecimal():
        raise InvalidConfig(f"node.id: {text!r} is not a whole number of at least 0")
    return int(text)


def client_listeners(properties: Mapping[str, str], key: str, number: int) -> list[Endpoint]:
    """Return the listeners of a shard for clients, from `listeners` or `advertised.listeners`."""
    controllers = {name.strip().upper() for name in properties.get("controller.listener.names", "").split(",")}
    endpoints = [one for one in parse_endpoints(key, properties.get(key, "")) if one.name not in controllers]
    return [one._replace(port=one.port and one.port + number - 1) for one in endpoints]


def check_client_ports(properties: Mapping[str, str], count: int) -> None:
    """Raise InvalidConfig if two shards would listen on one port, or above the highest one."""
    owners: dict[int, tuple[int, Endpoint]] = {}
    for number in range(1, count + 1):
        for one in client_listeners(properties, "listeners", number):
            if one.port > PORT_MAX:
                raise InvalidConfig(f"listeners: shard {number} would listen on {one}; the limit is {PORT_MAX}")
            other = owners.setdefault(one.port, (number, one))
            if one.port and other[0] != number:
                raise InvalidConfig(
                    f"listeners: shard {other[0]} would listen on {other[1]}, and shard {number} on {one}: "
                    f"give the listeners ports that are at least {count} apart"
                )


def settings_of_shard(
    properties: Mapping[str, str],
    number: int,
    sockets: Mapping[str, tuple[int, int]],
    controller_port: int,
    login: Login,
) -> dict[str, str]:
    """Return the settings of a shard. `sockets` has port and descriptor of each inherited socket, by listener."""
    settings = {**_DEFAULTS, **{key: text for key, text in properties.items() if key not in _REPLACED}}
    ports = {name: port for name, (port, _) in sockets.items()}
    internal = [Endpoint(SHARDS_LISTENER, LOOPBACK, ports[SHARDS_LISTENER])]
    if number == 1:
        internal.append(Endpoint(CONTROLLER, LOOPBACK, controller_port))
    clients = client_listeners(properties, "listeners", number)
    clients = [one._replace(port=ports.get(one.name, one.port)) for one in clients]
    settings["listeners"] = _text([*clients, *internal])
    if "advertised.listeners" in properties:
        advertised = client_listeners(properties, "advertised.listeners", number)
        settings["advertised.listeners"] = _text([*advertised, internal[0]])
    if "METRICS" in ports:
        settings["tailrace.metrics.port"] = str(ports["METRICS"])
    settings |= {
        "process.roles": "broker,controller" if number == 1 else "broker",
        "node.id": str(first_node_id(properties) + number - 1),
        "log.dirs": ",".join(shard_folder(path, number) for path in log_dirs(properties)),
        "controller.listener.names": CONTROLLER,
        "controller.quorum.bootstrap.servers": f"{LOOPBACK}:{controller_port}",
        "inter.broker.listener.name": SHARDS_LISTENER,
        "tailrace.inherited.sockets": ",".join(f"{name}:{descriptor}" for name, (_, descriptor) in sockets.items()),
        **_security(properties, login),
    }
    if "metadata.log.dir" in properties:
        settings["metadata.log.dir"] = shard_folder(properties["metadata.log.dir"], number)
    return settings


def log_dirs(properties: Mapping[str, str]) -> list[str]:
    """Return the directories that have the folders of the shards."""
    return [path.strip() for path in properties["log.dirs"].split(",") if path.strip()]


def data_dirs(properties: Mapping[str, str]) -> list[str]:
    """Return the directories of `log.dirs` and `metadata.log.dir`."""
    more = [properties["metadata.log.dir"]] if "metadata.log.dir" in properties else []
    return list(dict.fromkeys([*log_dirs(properties), *more]))


def _text(endpoints: Sequence[Endpoint]) -> str:
    return ",".join(map(str, endpoints))


def _security(properties: Mapping[str, str], login: Login) -> dict[str, str]:
    key = "listener.security.protocol.map"
    known = properties.get(key) or ",".join(f"{one}:{one}" for one in PROTOCOLS)
    found = {
        key: f"{known},{SHARDS_LISTENER}:SASL_PLAINTEXT,{CONTROLLER}:SASL_PLAINTEXT",
        "sasl.mechanism.inter.broker.protocol": _MECHANISM,
        "sasl.mechanism.controller.protocol": _MECHANISM,
    }
    for name in (SHARDS_LISTENER, CONTROLLER):
        prefix = f"listener.name.{name.lower()}"
        mechanism = f"{prefix}.{_MECHANISM.lower()}"
        found[f"{prefix}.sasl.enabled.mechanisms"] = _MECHANISM
        found[f"{mechanism}.sasl.jaas.config"] = login.jaas()
        found[f"{mechanism}.connections.max.reauth.ms"] = "0"
    if properties.get("authorizer.class.name"):
        users = [one for one in properties.get("super.users", "").split(";") if one.strip()]
        found["super.users"] = ";".join([*users, f"User:{login.user}"])
    return found
