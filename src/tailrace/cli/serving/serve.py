"""`tailrace serve`: run a broker as a process, or several as shards of one node.

Settings come from --config, then from --data, --host and --port, then from -o; a later source overrides an earlier one.
When clients can connect, one line with the addresses is printed to standard output. Warnings and the log go to standard
error.

SIGTERM or SIGINT stops the broker cleanly, with status 0. A second signal does not wait for pending responses.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from tailrace.cli.connection.properties_file import read_properties
from tailrace.cli.errors import CommandError
from tailrace.cli.serving.log_format import set_up_logging
from tailrace.cli.serving.serve_start import SHARDS_KEY

if TYPE_CHECKING:
    from tailrace.cli.console.beside_broker import ConsoleBeside

DEFAULT_HOST: Final = "127.0.0.1"
DEFAULT_PORT: Final = 9092


def run(options: argparse.Namespace) -> int:
    began = time.perf_counter()
    set_up_logging(options.log_level, options.log_format)
    properties = gather_properties(options)
    console = _console(options)
    # Of the two modules only one is imported: the parent of shards is not a broker, and a broker has no shards.
    if properties.get(SHARDS_KEY, "1") == "1":
        from tailrace.cli.serving.serve_broker import serve_broker

        return serve_broker(options, properties, console, began)
    from tailrace.cli.serving.serve_shards import serve_shards

    return serve_shards(options, properties, console, began)


def _console(options: argparse.Namespace) -> ConsoleBeside | None:
    """Return the console that the options request, not yet started, or None."""
    if options.console is not None:
        # Few brokers have a console, and the import would slow down every start.
        from tailrace.cli.console.beside_broker import ConsoleBeside

        return ConsoleBeside(options)
    for name, value in vars(options).items():
        if name.startswith("console_") and value not in (None, False, []):
            raise CommandError(f"--{name.replace('_', '-')} needs --console")
    return None


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
    if options.shards is not None:
        if SHARDS_KEY in chosen:
            raise CommandError(f"--shards and -o {SHARDS_KEY} set the same property: give only one of them")
        properties[SHARDS_KEY] = str(options.shards)
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
