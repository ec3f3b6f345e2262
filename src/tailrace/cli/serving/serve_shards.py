"""`tailrace serve --shards N`: several brokers as one node, each a process. This process only watches over them."""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from tailrace.cli.errors import CommandError
from tailrace.cli.serving.serve_start import SHARDS_KEY, print_ready, read_credentials
from tailrace.log.directories.shards_file import ShardedDirectory, read_shards
from tailrace.log.disk.directory_lock import DirectoryInUse
from tailrace.log.disk.files import DiskFiles
from tailrace.model.topic_config import InvalidConfig
from tailrace.node.shards.run_shards import ShardOptions, ShardRun, ShardsFailed
from tailrace.node.shards.shard_settings import check_shardable, client_listeners, data_dirs
from tailrace.node.umask import umask_of
from tailrace.server.connections.endpoints import Endpoint, parse_endpoints, parse_protocol_map, protocols_of

if TYPE_CHECKING:
    from tailrace.cli.console.beside_broker import ConsoleBeside
    from tailrace.node.shards.metrics_server import MetricsServer

AUTO: Final = "auto"
METRICS_PORT: Final = "tailrace.metrics.port"
_FAILED: Final = 1
_CANNOT_START: Final = 2


def serve_shards(
    options: argparse.Namespace, properties: Mapping[str, str], console: ConsoleBeside | None, began: float
) -> int:
    try:
        count = shard_count(properties)
        check_shardable(properties, count)
        if count == 1:
            from tailrace.cli.serving.serve_broker import serve_broker

            return serve_broker(options, properties, console, began)
        if console is not None:
            clients = [str(one) for one in client_listeners(properties, "listeners", 1)]
            console.check_listeners([protocol for _, protocol in _secured(properties, clients)])
        shards = ShardRun(
            properties, count, _shard_options(options, properties), has_metrics=METRICS_PORT in properties
        )
    except (InvalidConfig, ShardedDirectory, DirectoryInUse) as error:
        raise CommandError(str(error), status=_CANNOT_START) from error

    metrics = _metrics_server(properties, shards) if METRICS_PORT in properties else None

    def report_ready() -> None:
        url = None if metrics is None else f"http://{metrics.address}/metrics"
        listeners = [one for number in range(1, count + 1) for one in shards.ready(number)["listeners"]]
        kernels = shards.ready(1)["kernels"]
        how = f"{count} shards, {(time.perf_counter() - began) * 1000:.0f} ms, {kernels}"
        print_ready(listeners, url, properties["log.dirs"], how, options.ready_line)
        if console is not None:
            _start(console, properties, shards.ready(1)["listeners"], None if metrics is None else metrics.address)

    try:
        shards.run(report_ready)
    except ShardsFailed as error:
        raise CommandError(str(error), status=_FAILED if error.has_served else _CANNOT_START) from error
    finally:
        if console is not None:
            console.stop()
        if metrics is not None:
            metrics.stop()
    return 0


def _metrics_server(properties: Mapping[str, str], shards: ShardRun) -> MetricsServer:
    # Without --metrics-port the parent does without these modules.
    from tailrace.node.shards.metrics_server import MetricsServer
    from tailrace.node.shards.shard_metrics import ShardMetrics
    from tailrace.server.settings import METRICS, ServerSettings

    own = {key: text for key, text in properties.items() if key.startswith("tailrace.metrics.")}
    ports = {number: shards.sockets.port(number, METRICS) for number in range(1, shards.count + 1)}
    server = MetricsServer(ServerSettings.parse(own), ShardMetrics(ports, shards.supervisor))
    server.start()
    return server


def shard_count(properties: Mapping[str, str]) -> int:
    """Return the number of shards. `auto` is one for each core, and at least those of the directory."""
    text = properties.get(SHARDS_KEY, "1")
    if text == AUTO:
        known = [read_shards(DiskFiles(), path) for path in data_dirs(properties)]
        return max(_cores(), *known)
    if not text.isascii() or not text.isdecimal():
        raise InvalidConfig(f"{SHARDS_KEY}: {text!r} is neither a whole number nor {AUTO}")
    return int(text)


def _cores() -> int:
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _shard_options(options: argparse.Namespace, properties: Mapping[str, str]) -> ShardOptions:
    umask = umask_of(properties)
    os.umask(umask)
    return ShardOptions(
        log_level=options.log_level,
        log_format=options.log_format,
        umask=umask,
        credentials=tuple(read_credentials(options.add_scram)),
        cluster_id=options.cluster_id,
    )


def _start(
    console: ConsoleBeside, properties: Mapping[str, str], listeners: Sequence[str], metrics: str | None
) -> None:
    """Start the console with the listeners of the first shard."""
    from tailrace.cli.console.beside_broker import local_address

    pairs = [(protocol, local_address(one.host, one.port)) for one, protocol in _secured(properties, listeners)]
    console.start(pairs, data_dirs(properties), metrics)


def _secured(properties: Mapping[str, str], listeners: Sequence[str]) -> list[tuple[Endpoint, str]]:
    """Return listeners with their security protocols."""
    endpoints = parse_endpoints("listeners", ",".join(listeners))
    protocols = protocols_of(endpoints, parse_protocol_map(properties.get("listener.security.protocol.map", "")))
    return [(one, protocols[one.name]) for one in endpoints]
