"""Roles: a node is a broker whose controllers are other nodes, a controller of other brokers, or both in one.

    process.roles=broker                                  this node is a broker of a cluster
    process.roles=controller                              this node is the only controller of a cluster
    process.roles=broker,controller                       this node is a broker, and the only controller
    controller.quorum.bootstrap.servers=c1:9093,c2:9093   addresses of the controllers
    controller.quorum.voters=1@c1:9093,2@c2:9093          the same for clusters from before Kafka 3.9
    controller.listener.names=CONTROLLER                  name of the listener of the controllers

Without process.roles the node is a broker, and its own and only controller. A controller accepts other brokers if its
listener, CONTROLLER above, is among the `listeners`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tailrace.model.topic_config import InvalidConfig

_ADDRESS = re.compile(r"(?:\[(?P<six>[^\]]+)\]|(?P<host>[^:\[\]]+)):(?P<port>[0-9]+)")


_ONE_VOTER = "; for more voters, run Apache Kafka's controllers and set process.roles=broker"


class Roles(NamedTuple):
    is_broker_only: bool
    controllers: tuple[tuple[str, int], ...]  # their addresses; empty if this node is its own controller
    controller_listener: str  # the name of the controllers' listener
    controller_protocol: str = "PLAINTEXT"  # its security protocol
    has_broker: bool = True
    serves_brokers: bool = False  # True if this node listens as the controller of other brokers


def read_roles(
    roles: Sequence[str],
    node_id: int,
    voters: Sequence[str],
    bootstrap: Sequence[str],
    controller_listeners: Sequence[str],
    security: Mapping[str, str],
    *,
    listens: bool = False,
) -> Roles:
    """Return the roles. Raise InvalidConfig for roles that Kafka refuses or that Tailrace does not support. `listens`:
    a controller listener is among the listeners."""
    if unknown := set(roles) - {"broker", "controller"}:
        raise InvalidConfig(f"process.roles: {sorted(unknown)[0]!r} is not a role; use broker, controller, or both")
    if not roles or "controller" in roles:
        _check_only_voter(node_id, voters, bootstrap)
        has_broker = list(roles) != ["controller"]
        if not has_broker and not listens:
            raise InvalidConfig(
                "listeners: a node with process.roles=controller needs a listener that is named in "
                "controller.listener.names, such as CONTROLLER://127.0.0.1:9093"
            )
        name = controller_listeners[0] if controller_listeners else "CONTROLLER"
        return Roles(False, (), name, security.get(name, "PLAINTEXT"), has_broker, listens)
    if not controller_listeners:
        raise InvalidConfig("controller.listener.names: a node with process.roles=broker needs at least one")
    if not voters and not bootstrap:
        raise InvalidConfig("a broker needs controller.quorum.bootstrap.servers or controller.quorum.voters")
    known = [parse_voter(one) for one in voters]
    if node_id in [voter_id for voter_id, _ in known]:
        raise InvalidConfig(
            f"controller.quorum.voters: node {node_id} has process.roles=broker and must not be a voter; remove it"
        )
    name = controller_listeners[0]
    where = [_address("controller.quorum.bootstrap.servers", one) for one in bootstrap]
    where += [address for _, address in known]
    return Roles(True, tuple(dict.fromkeys(where)), name, security.get(name, "PLAINTEXT"))


def _check_only_voter(node_id: int, voters: Sequence[str], bootstrap: Sequence[str]) -> None:
    """Raise InvalidConfig if the quorum of a controller has other voters than this node."""
    if [one.partition("@")[0] for one in voters] not in ([], [str(node_id)]):
        raise InvalidConfig(
            f"controller.quorum.voters: a node that is a controller must be the only voter, {node_id}{_ONE_VOTER}"
        )
    if len(bootstrap) > 1:
        raise InvalidConfig(
            f"controller.quorum.bootstrap.servers: a node that is a controller must be the only voter{_ONE_VOTER}"
        )


def parse_voter(text: str) -> tuple[int, tuple[str, int]]:
    """Return the id and the address of `id@host:port`."""
    number, at, address = text.partition("@")
    if not at or not number.isdecimal():
        raise InvalidConfig(f"controller.quorum.voters: '{text}' is not a voter; write id@host:port")
    return int(number), _address("controller.quorum.voters", address)


def _address(key: str, text: str) -> tuple[str, int]:
    match = _ADDRESS.fullmatch(text)
    if match is None or not 0 < int(match["port"]) <= 65535:
        raise InvalidConfig(f"{key}: '{text}' is not an address; write host:port")
    return match["six"] or match["host"], int(match["port"])
