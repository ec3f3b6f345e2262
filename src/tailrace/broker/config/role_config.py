"""Roles: whether a node is its own controller, or a broker below controllers that are other nodes.

process.roles=broker                                  one of a cluster's brokers
controller.quorum.bootstrap.servers=c1:9093,c2:9093   where its controllers are to be found
controller.quorum.voters=1@c1:9093,2@c2:9093          the same, as clusters of before Kafka 3.9 say it
controller.listener.names=CONTROLLER                  the name under which controllers tell where they listen
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tailrace.model.topic_config import InvalidConfig

_ADDRESS = re.compile(r"(?:\[(?P<six>[^\]]+)\]|(?P<host>[^:\[\]]+)):(?P<port>[0-9]+)")


class Roles(NamedTuple):
    is_broker_only: bool
    controllers: tuple[tuple[str, int], ...]  # where to ask; none for a node that is alone
    controller_listener: str  # the name of the controllers' listener
    controller_protocol: str = "PLAINTEXT"  # how it is secured


def read_roles(
    roles: Sequence[str],
    node_id: int,
    voters: Sequence[str],
    bootstrap: Sequence[str],
    controller_listeners: Sequence[str],
    security: Mapping[str, str],
) -> Roles:
    """What Kafka checks for these roles; InvalidConfig for what it would refuse, and for what we cannot be."""
    if set(roles) == {"broker", "controller"} or not roles:
        if [one.partition("@")[0] for one in voters] not in ([], [str(node_id)]):
            raise InvalidConfig("controller.quorum.voters: a node that is a controller can only be alone")
        if len(bootstrap) > 1:
            raise InvalidConfig("controller.quorum.bootstrap.servers: a node that is a controller can only be alone")
        return Roles(False, (), controller_listeners[0] if controller_listeners else "CONTROLLER")
    if list(roles) != ["broker"]:
        raise InvalidConfig("process.roles: a node is a broker, or broker and controller in one; no controller alone")
    if not controller_listeners:
        raise InvalidConfig("controller.listener.names: there has to be one for a node that is a broker only")
    if not voters and not bootstrap:
        raise InvalidConfig("a broker needs controller.quorum.bootstrap.servers or controller.quorum.voters")
    known = [parse_voter(one) for one in voters]
    if node_id in [voter_id for voter_id, _ in known]:
        raise InvalidConfig(f"controller.quorum.voters: node {node_id} is a broker only and must not be among them")
    name = controller_listeners[0]
    where = [_address("controller.quorum.bootstrap.servers", one) for one in bootstrap]
    where += [address for _, address in known]
    return Roles(True, tuple(dict.fromkeys(where)), name, security.get(name, "PLAINTEXT"))


def parse_voter(text: str) -> tuple[int, tuple[str, int]]:
    """The id and address of `id@host:port`."""
    number, at, address = text.partition("@")
    if not at or not number.isdecimal():
        raise InvalidConfig(f"controller.quorum.voters: '{text}' is no voter; one is id@host:port")
    return int(number), _address("controller.quorum.voters", address)


def _address(key: str, text: str) -> tuple[str, int]:
    match = _ADDRESS.fullmatch(text)
    if match is None or not 0 < int(match["port"]) <= 65535:
        raise InvalidConfig(f"{key}: '{text}' is no address; one is host:port")
    return match["six"] or match["host"], int(match["port"])
