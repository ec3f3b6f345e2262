"""`tailrace serve`: run a broker as a process.

Settings come from --config, then from --data, --host and --port, then from -o; a later source overrides an earlier one.
When clients can connect, one line with the addresses is printed to standard output. Warnings and the log go to standard
error.

SIGTERM or SIGINT stops the broker cleanly, with status 0. A second signal does not wait for pending responses.
"""

from __future__ import annotations

import argparse
import logging
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tailrace.broker.config.broker_config import BrokerConfig
from tailrace.broker.startup.open_broker import REFUSALS
from tailrace.cli.connection.properties_file import read_properties
from tailrace.cli.console.beside_broker import ConsoleBeside, local_address
from tailrace.cli.errors import CommandError
from tailrace.cli.serving.log_format import set_up_logging
from tailrace.log.disk.files import DiskFiles
from tailrace.metadata.storage.storage_format import is_formatted
from tailrace.model.kernel_forms import describe_kernels
from tailrace.model.log_fields import fields
from tailrace.node.serving import broker_builder, has_telemetry, server_settings, split_settings, umask_of
from tailrace.server.run_broker import run_broker
from tailrace.server.server import Server

DEFAULT_HOST: Final = "127.0.0.1"
DEFAULT_PORT: Final = 9092
FAILED: Final = 1
CANNOT_START: Final = 2
_log = logging.getLogger("tailrace.serve")


def run(options: argparse.Namespace) -> int:
    began = time.perf_counter()
    set_up_logging(options.log_level, options.log_format)
    properties = gather_properties(options)
    console = _console(options)
    has_served = False

    def report_ready(server: Server) -> None:
        nonlocal has_served
        has_served = True
        places = ", ".join(map(str, server.endpoints))
        metrics = None if server.metrics is None else f"http://{server.metrics.address}/metrics"
        took_ms = (time.perf_counter() - began) * 1000
        _log.info(
            "clients can connect",
            extra=fields(
                listeners=places,
                advertised=", ".join(map(str, server.advertised)),
                metrics=metrics,
                log_dirs=properties["log.dirs"],
                took_ms=took_ms,
            ),
        )
        if metrics is not None:
            places += f", metrics on {metrics},"
        how = f"{took_ms:.0f} ms, {describe_kernels()}"
        print(f"tailrace serves {places} from {properties['log.dirs']} ({how})", flush=True)
        if options.ready_line is not None:
            print(options.ready_line, flush=True)
        if console is not None:
            _start(console, server, config)

    try:
        config, own_settings = split_settings(properties)
        for warning in config.warnings:
            _log.warning("%s", warning)
        if options.add_scram and config.roles.is_broker_only:
            raise CommandError(
                "--add-scram works only for a standalone node: use kafka-configs for the credentials of a cluster"
            )
        if console is not None:
            console.check_listeners([one.security_protocol for one in config.listeners])
        if any(is_formatted(DiskFiles(), path) for path in config.log_dirs):
            _warn_without_effect(options)
        umask = umask_of(own_settings)
        os.umask(umask)
        build = broker_builder(
            config,
            umask=umask,
            telemetry=has_telemetry(own_settings),
            credentials=read_credentials(options.add_scram),
            cluster_id=options.cluster_id,
        )
        run_broker(build, server_settings(config, own_settings), on_ready=report_ready)
    except REFUSALS as error:
        raise CommandError(str(error), status=FAILED if has_served else CANNOT_START) from error
    finally:
        if console is not None:
            console.stop()
    return 0


def _start(console: ConsoleBeside, server: Server, config: BrokerConfig) -> None:
    protocols = {one.name: one.security_protocol for one in config.listeners}
    listeners = [(protocols[one.name], local_address(one.host, one.port)) for one in server.endpoints]
    console.start(listeners, config.log_dirs, None if server.metrics is None else server.metrics.address)


def _console(options: argparse.Namespace) -> ConsoleBeside | None:
    """Return the console that the options request, not yet started, or None."""
    if options.console is not None:
        return ConsoleBeside(options)
    for name, value in vars(options).items():
        if name.startswith("console_") and value not in (None, False, []):
            raise CommandError(f"--{name.replace('_', '-')} needs --console")
    return None


def _warn_without_effect(options: argparse.Namespace) -> None:
    """Log a warning for each option that has an effect only on a new directory."""
    if options.add_scram:
        _log.warning("--add-scram has no effect on an existing directory; change its credentials with kafka-configs")
    if options.cluster_id is not None:
        _log.warning("--cluster-id has no effect on an existing directory, which keeps its cluster id")


def read_credentials(sources: Sequence[str]) -> list[str]:
    """Return the lines of files (@FILE) and of standard input (-)."""
    lines: list[str] = []
    for source in sources:
        if source == "-":
            text = sys.stdin.read()
        elif source.startswith("@"):
            text = Path(source[1:]).read_text(encoding="utf-8")
        else:
            raise CommandError(
                "--add-scram: a password in an argument is visible to every user of this machine while the broker runs."
                " Write the line into a file and give --add-scram @FILE, or give --add-scram - and write it to standard"
                " input"
            )
        lines += [line for line in text.splitlines() if line.strip()]
    return lines


def gather_properties(options: argparse.Namespace) -> dict[str, str]:
    """Return the settings of all options as Kafka properties."""
    properties = read_properties(options.config) if options.config else {}
    chosen = parse_overrides(options.override)
    if options.data:
        if "log.dirs" in chosen:
            raise CommandError("--data and -o log.dirs set the same property: give only one of them")
        properties["log.dirs"] = ",".join(options.data)
    if options.port is not None or options.host is not None:
        if "listeners" in chosen:
            raise CommandError("--host and --port set the property listeners: give either them or -o listeners")
        properties["listeners"] = _listener(options.host, options.port)
    if options.metrics_port is not None:
        if "tailrace.metrics.port" in chosen:
            raise CommandError("--metrics-port and -o tailrace.metrics.port set the same property: give only one")
        properties["tailrace.metrics.port"] = str(options.metrics_port)
    elif options.console is not None:
        properties.setdefault("tailrace.metrics.port", "0")  # the console shows the traffic
    properties.update(chosen)
    if "log.dirs" not in properties:
        if "log.dir" not in properties:
            raise CommandError("no data directory: give --data DIR, or log.dirs in --config FILE")
        properties["log.dirs"] = properties["log.dir"]
    properties.setdefault("listeners", _listener(None, None))
    return properties


def parse_overrides(pairs: Sequence[str]) -> dict[str, str]:
    chosen = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key.strip():
            raise CommandError(f"-o {pair} is not a setting: write KEY=VALUE")
        chosen[key.strip()] = value.strip()
    return chosen


def _listener(host: str | None, port: int | None) -> str:
    host = DEFAULT_HOST if host is None else host
    return f"PLAINTEXT://{f'[{host}]' if ':' in host else host}:{DEFAULT_PORT if port is None else port}"
