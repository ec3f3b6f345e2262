"""Properties files for a node that was migrated to a cluster: one for its broker and one for each controller."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from tailrace.broker.config.listener_config import SECURITY_PROTOCOLS, parse_security_map
from tailrace.broker.config.properties_file import property_line
from tailrace.metadata.storage.migration import Migration, NewController

_PROTOCOL_NAMES: Final = {code: name for name, code in SECURITY_PROTOCOLS.items()}
# Settings of a node that is its own controller. They are replaced by the roles of the new node and by `_quorum`.
_DROPPED: Final = ("process.roles", "controller.quorum.voters", "controller.quorum.bootstrap.servers")
# Settings that a controller uses when it creates topics, elects leaders and authorizes requests.
_CONTROLLER_SETTINGS: Final = (
    "num.partitions",
    "default.replication.factor",
    "min.insync.replicas",
    "unclean.leader.election.enable",
    "auto.leader.rebalance.enable",
    "leader.imbalance.check.interval.seconds",
    "leader.imbalance.per.broker.percentage",
    "delete.topic.enable",
    "message.max.bytes",
    "compression.type",
    "create.topic.policy.class.name",
    "alter.config.policy.class.name",
    "authorizer.class.name",
    "super.users",
    "allow.everyone.if.no.acl.found",
    "broker.session.timeout.ms",
    "delegation.token.secret.key",
)
_CONTROLLER_PREFIXES: Final = ("log.", "metadata.", "controller.quorum.", "controller.quota.", "sasl.", "ssl.")
# A standalone node creates the coordinators' topics with one replica and ignores these settings. A cluster with one
# broker obeys them, so they are set to 1.
_COORDINATOR_TOPIC_SETTINGS: Final = (
    "offsets.topic.replication.factor",
    "transaction.state.log.replication.factor",
    "transaction.state.log.min.isr",
    "share.coordinator.state.topic.replication.factor",
    "share.coordinator.state.topic.min.isr",
)
_DIRECTORY_SETTINGS: Final = ("log.dir", "log.dirs", "metadata.log.dir")


def broker_properties(migration: Migration, settings: Mapping[str, str]) -> dict[str, str]:
    """Return the settings of the node as a broker of the new cluster."""
    made = {key: text for key, text in settings.items() if key not in _DROPPED}
    made["process.roles"] = "broker"
    made["node.id"] = str(migration.node.identity.node_id)
    made.pop("broker.id", None)
    for key in ("listeners", "advertised.listeners"):
        if key in made:
            made[key] = _without_listener(made[key], migration.listener)
            if not made[key]:
                del made[key]
    if "listeners" not in made:
        made["listeners"] = ",".join(f"{name}://{host}:{port}" for name, host, port in _registered_endpoints(migration))
    security = {name: _PROTOCOL_NAMES[code] for name, code in _protocols(migration).items()}
    made["listener.security.protocol.map"] = _map_with_controller_listener(made, security, migration.listener)
    return made | _quorum(migration) | {key: "1" for key in _COORDINATOR_TOPIC_SETTINGS if key not in made}


def controller_properties(
    migration: Migration, controller: NewController, settings: Mapping[str, str]
) -> dict[str, str]:
    """Return the settings of one of the new controllers."""
    prefixes = (*_CONTROLLER_PREFIXES, f"listener.name.{migration.listener.lower()}.")
    made = {
        key: text
        for key, text in settings.items()
        if (key in _CONTROLLER_SETTINGS or key.startswith(prefixes)) and key not in (*_DIRECTORY_SETTINGS, *_DROPPED)
    }
    address = str(controller).partition("@")[2]
    security = parse_security_map(settings.get("listener.security.protocol.map", ""))
    return {
        **made,
        "process.roles": "controller",
        "node.id": str(controller.node_id),
        "listeners": f"{migration.listener}://{address}",
        "listener.security.protocol.map": f"{migration.listener}:{security.get(migration.listener, 'PLAINTEXT')}",
        "log.dirs": controller.path,
        **_quorum(migration),
    }


def _quorum(migration: Migration) -> dict[str, str]:
    voters = list(map(str, migration.controllers))
    settings = {"controller.listener.names": migration.listener}
    if migration.kraft_version:
        addresses = ",".join(one.partition("@")[2] for one in voters)
        return settings | {"controller.quorum.bootstrap.servers": addresses}
    return settings | {"controller.quorum.voters": ",".join(voters)}


def _registered_endpoints(migration: Migration) -> Sequence[tuple[str, str, int]]:
    broker = migration.image.brokers.get(migration.node.identity.node_id)
    if broker is None:
        return [("PLAINTEXT", "127.0.0.1", 9092)]
    return [
        (one.listener, f"[{one.host}]" if ":" in one.host else one.host, one.port) for one in broker.endpoints.values()
    ]


def _protocols(migration: Migration) -> dict[str, int]:
    broker = migration.image.brokers.get(migration.node.identity.node_id)
    if broker is None:
        return {"PLAINTEXT": 0}
    return {one.listener: one.security_protocol for one in broker.endpoints.values()}


def _map_with_controller_listener(settings: Mapping[str, str], security: Mapping[str, str], listener: str) -> str:
    protocol_map = settings.get("listener.security.protocol.map")
    if protocol_map is None:
        protocol_map = ",".join(f"{name}:{protocol}" for name, protocol in security.items())
    names = [one.partition(":")[0].strip().upper() for one in protocol_map.split(",")]
    return protocol_map if listener in names else f"{listener}:PLAINTEXT,{protocol_map}"


def _without_listener(listeners: str, name: str) -> str:
    kept = [one.strip() for one in listeners.split(",") if one.partition("://")[0].strip().upper() != name]
    return ",".join(kept)


def properties_text(settings: Mapping[str, str], heading: str) -> str:
    """Return the text of a properties file that Kafka and Tailrace can read."""
    return f"# {heading}\n" + "".join(map(property_line, settings, settings.values()))
