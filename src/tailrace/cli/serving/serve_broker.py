"""One broker in this process: `tailrace serve` without --shards, and each shard."""

from __future__ import annotations

import argparse
import logging
import os
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from tailrace.broker.broker import Broker
from tailrace.broker.config.broker_config import BrokerConfig
from tailrace.broker.startup.open_broker import REFUSALS
from tailrace.cli.errors import CommandError
from tailrace.cli.serving.serve_start import print_ready, read_credentials
from tailrace.log.disk.files import DiskFiles
from tailrace.metadata.storage.storage_format import is_formatted
from tailrace.model.kernel_forms import describe_kernels
from tailrace.model.log_fields import fields
from tailrace.node.serving import broker_builder, has_telemetry, server_settings, split_settings
from tailrace.node.umask import umask_of
from tailrace.server.broker_interface import ServerFunctions
from tailrace.server.run_broker import run_broker
from tailrace.server.server import Server

if TYPE_CHECKING:
    from tailrace.cli.console.beside_broker import ConsoleBeside

FAILED: Final = 1
CANNOT_START: Final = 2
_log = logging.getLogger("tailrace.serve")


def serve_broker(
    options: argparse.Namespace, properties: Mapping[str, str], console: ConsoleBeside | None, began: float
) -> int:
    def report_ready(server: Server) -> None:
        log_ready(server, properties, began)
        metrics = None if server.metrics is None else f"http://{server.metrics.address}/metrics"
        how = f"{(time.perf_counter() - began) * 1000:.0f} ms, {describe_kernels()}"
        print_ready(server.endpoints, metrics, properties["log.dirs"], how, options.ready_line)
        if console is not None:
            protocols = {one.name: one.security_protocol for one in config.listeners}
            _start(console, server, protocols, config.log_dirs)

    config, own_settings = checked_settings(properties)
    if options.add_scram and config.roles.is_broker_only:
        raise CommandError(
            "--add-scram works only for a standalone node: use kafka-configs for the credentials of a cluster"
        )
    if console is not None:
        console.check_listeners([one.security_protocol for one in config.listeners])
    if any(is_formatted(DiskFiles(), path) for path in config.log_dirs):
        _warn_without_effect(options)
    try:
        serve(config, own_settings, read_credentials(options.add_scram), options.cluster_id, report_ready)
    finally:
        if console is not None:
            console.stop()
    return 0


def checked_settings(properties: Mapping[str, str]) -> tuple[BrokerConfig, dict[str, str]]:
    """Return Kafka's settings and Tailrace's own, and log a warning for each without effect."""
    try:
        config, own_settings = split_settings(properties)
    except REFUSALS as error:
        raise CommandError(str(error), status=CANNOT_START) from error
    for warning in config.warnings:
        _log.warning("%s", warning)
    return config, own_settings


def serve(
    config: BrokerConfig,
    own_settings: Mapping[str, str],
    credentials: Sequence[str],
    cluster_id: str | None,
    report_ready: Callable[[Server], None],
    on_built: Callable[[Broker], None] = lambda broker: None,
) -> None:
    """Serve until a signal asks to stop. Raise CommandError if the broker cannot start, or has to end."""
    has_served = False

    def on_ready(server: Server) -> None:
        nonlocal has_served
        has_served = True
        report_ready(server)

    try:
        umask = umask_of(own_settings)
        os.umask(umask)
        open_broker = broker_builder(
            config, umask=umask, telemetry=has_telemetry(own_settings), credentials=credentials, cluster_id=cluster_id
        )

        def build(server_functions: ServerFunctions) -> Broker:
            broker = open_broker(server_functions)
            on_built(broker)
            return broker

        run_broker(build, server_settings(config, own_settings), on_ready=on_ready)
    except REFUSALS as error:
        raise CommandError(str(error), status=FAILED if has_served else CANNOT_START) from error


def log_ready(server: Server, properties: Mapping[str, str], began: float) -> None:
    _log.info(
        "clients can connect",
        extra=fields(
            listeners=", ".join(map(str, server.endpoints)),
            advertised=", ".join(map(str, server.advertised)),
            metrics=None if server.metrics is None else f"http://{server.metrics.address}/metrics",
            log_dirs=properties["log.dirs"],
            took_ms=(time.perf_counter() - began) * 1000,
        ),
    )


def _start(console: ConsoleBeside, server: Server, protocols: Mapping[str, str], data: Sequence[str]) -> None:
    from tailrace.cli.console.beside_broker import local_address

    clients = [one for one in server.endpoints if one.name in protocols]
    listeners = [(protocols[one.name], local_address(one.host, one.port)) for one in clients]
    console.start(listeners, data, None if server.metrics is None else server.metrics.address)


def _warn_without_effect(options: argparse.Namespace) -> None:
    """Log a warning for each option that has an effect only on a new directory."""
    if options.add_scram:
        _log.warning("--add-scram has no effect on an existing directory; change its credentials with kafka-configs")
    if options.cluster_id is not None:
        _log.warning("--cluster-id has no effect on an existing directory, which keeps its cluster id")
