"""Builds a broker from its settings, its directories and the network.

    properties → split_settings → BrokerConfig (Kafka's keys) and own_settings (`tailrace.…`)
    server_settings(config, own_settings) → ServerSettings
    broker_builder(config) → a function that builds the broker when the server knows its ports

The core gets its dependencies here: the disk, the clock and random numbers.
"""

from __future__ import annotations

import os
import random
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from tailrace.broker.broker import Broker
from tailrace.broker.config.broker_config import BrokerConfig
from tailrace.broker.security.token_validators import FetchKeys
from tailrace.broker.startup.environment import RemoteHost
from tailrace.broker.startup.open_broker import open_broker
from tailrace.log.disk.files import PRIVATE_UMASK, DiskFiles, Files
from tailrace.metadata.storage.storage_format import is_formatted
from tailrace.model.topic_config import InvalidConfig
from tailrace.node.timed_files import TimedFiles
from tailrace.protocol.message import Message
from tailrace.server.broker_interface import ServerFunctions
from tailrace.server.connections.descriptors import open_segments_max
from tailrace.server.loop.clock import wall_clock_ms
from tailrace.server.settings import ServerSettings
from tailrace.waiting.chore import Chore

OWN_PREFIX: Final = "tailrace."
TELEMETRY_KEY: Final = "tailrace.telemetry.enable"


def split_settings(properties: Mapping[str, str]) -> tuple[BrokerConfig, dict[str, str]]:
    """Return Kafka's settings, validated, and Tailrace's own settings (`tailrace.…`)."""
    own_settings = {key: text for key, text in properties.items() if key.startswith(OWN_PREFIX)}
    return BrokerConfig({key: text for key, text in properties.items() if key not in own_settings}), own_settings


def server_settings(config: BrokerConfig, own_settings: Mapping[str, str]) -> ServerSettings:
    """Return the settings of the network layer."""
    properties = {**config.static, **own_settings}
    listeners = (*config.listeners, *config.controller_listeners)
    properties["listeners"] = ",".join(map(str, listeners))
    properties["advertised.listeners"] = ",".join(map(str, config.advertised_listeners))
    if "advertised.listeners" not in config.static:
        del properties["advertised.listeners"]
    properties["listener.security.protocol.map"] = ",".join(
        f"{listener.name}:{listener.security_protocol}" for listener in listeners
    )
    settings = ServerSettings.parse(properties)
    if not config.roles.is_broker_only and not config.roles.serves_brokers:
        return settings
    from tailrace.server.peers.outgoing_security import client_id_of, outgoing_security

    return replace(settings, outgoing=outgoing_security(config), client_id=client_id_of(config.node_id))


_DASH = 62  # the base64 digit that is written as a dash in URLs


def random_id() -> bytes:
    """Return a UUID of version 4, like Kafka's ids. The module `uuid` is not used, because its import slows the start.

    The text of the id never starts with a dash, which tools would parse as an option.
    """
    found = bytearray(os.urandom(16))
    while found[0] >> 2 == _DASH:
        found[0] = os.urandom(1)[0]
    found[6] = found[6] & 0x0F | 0x40
    found[8] = found[8] & 0x3F | 0x80
    return bytes(found)


def has_telemetry(own_settings: Mapping[str, str]) -> bool:
    """Return tailrace.telemetry.enable: True if clients may push their metrics."""
    text = own_settings.get(TELEMETRY_KEY, "false").lower()
    if text not in ("true", "false"):
        raise InvalidConfig(f"{TELEMETRY_KEY}: {text!r} must be true or false")
    if text == "true" and "tailrace.metrics.port" not in own_settings:
        raise InvalidConfig(f"{TELEMETRY_KEY}: set tailrace.metrics.port as well; the pushed metrics are exposed there")
    return text == "true"


def _credential_records(credentials: Sequence[str]) -> list[Message]:
    if not credentials:
        return []
    from tailrace.metadata.decisions.scram_credentials import first_credential

    return [first_credential(one, os.urandom(16)) for one in credentials]


def _key_fetches(
    config: BrokerConfig, server_functions: ServerFunctions, clock_ms: Callable[[], int]
) -> tuple[FetchKeys | None, Callable[[Chore], None] | None]:
    """Return the function that fetches the keys of identity providers, and its threads, if a listener needs them."""
    if not any(sasl.oauth is not None and sasl.oauth.jwks is not None for sasl in config.sasl.values()):
        return None, None
    from tailrace.server.http.jwks_endpoint import FetchThreads, fetch_keys

    return fetch_keys, FetchThreads(server_functions.call_soon, clock_ms).submit


def _remote_host(
    config: BrokerConfig, files: Files, server_functions: ServerFunctions, clock_ms: Callable[[], int]
) -> RemoteHost | None:
    """Return the remote stores and their threads, if tiered storage is enabled."""
    if config.remote is None:
        return None
    from tailrace.node.remote_host import remote_host

    return remote_host(files, server_functions.call_soon, clock_ms)


def broker_builder(
    config: BrokerConfig,
    *,
    umask: int = PRIVATE_UMASK,
    telemetry: bool = False,
    files: Files | None = None,
    clock_ms: Callable[[], int] = wall_clock_ms,
    credentials: Sequence[str] = (),
    cluster_id: str | None = None,
) -> Callable[[ServerFunctions], Broker]:
    """Return a function that opens the broker on its directories when its ports are known. `credentials` are stored
    when a new cluster is formatted: SCRAM-SHA-512=[name=…,password=…]. With `telemetry` clients may push metrics.
    A new directory gets `cluster_id`, or a random one."""
    first_records = _credential_records(credentials)

    def build(server_functions: ServerFunctions) -> Broker:
        disk = files or TimedFiles()
        if isinstance(disk, DiskFiles):
            disk.set_umask(umask)
        network = None
        is_new = not any(is_formatted(disk, path) for path in config.log_dirs)
        new_cluster_id = cluster_id if is_new else None
        if config.roles.is_broker_only:
            from tailrace.node.quorum_network import QuorumNetwork, find_cluster_id

            network = QuorumNetwork(config, server_functions, clock_ms)
        fetch, submit_fetch = _key_fetches(config, server_functions, clock_ms)
        remote = _remote_host(config, disk, server_functions, clock_ms)
        try:
            if network is not None and is_new:
                new_cluster_id = find_cluster_id(config)
            return open_broker(
                disk,
                config,
                now_ms=clock_ms(),
                new_id=random_id,
                next_int=random.randrange,
                bound={endpoint.name: endpoint.port for endpoint in server_functions.endpoints},
                default_host=socket.gethostname(),
                submit=server_functions.submit,
                is_turn_over=server_functions.is_turn_over,
                work_ns=time.perf_counter_ns,
                network=network,
                cluster_id=new_cluster_id,
                first_records=first_records,
                fetch_keys=fetch,
                submit_fetch=submit_fetch,
                remote=remote,
                has_telemetry=telemetry,
                log_flushes=disk.flushes if isinstance(disk, TimedFiles) else None,
                open_segments_max=open_segments_max(),
            )
        except BaseException:
            if network is not None:
                network.stop()
            raise

    return build
