"""`tailrace cluster up`: a controller and brokers on this machine, until Ctrl-C. Controllers may be Apache Kafka's.

Progress is printed to standard error. The bootstrap address is printed to standard output when clients can connect.
SIGINT or SIGTERM stops the brokers, which hand over their leaderships, and then the controllers. A second signal kills
all nodes. If a node ends by itself, the command reports it and the other nodes keep running. When no broker is left,
the command ends with status 1.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from tailrace.cli.errors import CommandError
from tailrace.cli.output import count_text, json_document, print_lines, size_text, table
from tailrace.cli.serving.serve import parse_overrides
from tailrace.cli.terminal.progress_bar import Progress
from tailrace.java import JavaMissing, find_java
from tailrace.local_cluster.cluster_plan import CannotPlan, Controllers, plan_cluster
from tailrace.local_cluster.kafka_program import KafkaProgram, NoKafka, controller_jars, installed_jars
from tailrace.local_cluster.local_cluster import CannotStart, LocalCluster, StopRequested
from tailrace.local_cluster.maven import VARIABLE, CannotFetch, MavenRepository
from tailrace.model.topic_config import InvalidConfig
from tailrace.node.serving import split_settings

_POLL_S: Final = 0.2
NO_BROKER_LEFT: Final = 1


def run(options: argparse.Namespace) -> int:
    try:
        plan = plan_cluster(
            Path(options.data).absolute(),
            brokers=options.brokers,
            controllers=_controllers(options),
            port=options.port,
            metrics_port=options.metrics_port,
            overrides=parse_overrides(options.override),
        )
        config, _ = split_settings(plan.brokers[0].settings)
        for warning in config.warnings:
            _print_progress(warning)
        kafka = _kafka(options) if plan.has_kafka else None
    except (CannotPlan, InvalidConfig, NoKafka, JavaMissing, CannotFetch) as error:
        raise CommandError(str(error)) from error
    cluster = LocalCluster(plan, kafka, _print_progress, log_level=options.log_level)
    before = _on_signals(cluster.request_stop)
    try:
        cluster.start()
        _show(cluster, is_json=options.json)
        while not cluster.stop_requests:
            if not cluster.watch_once():
                _print_progress("all brokers have ended")
                return NO_BROKER_LEFT
            time.sleep(_POLL_S)
        return 0
    except StopRequested:
        return 0
    except CannotStart as error:
        raise CommandError(str(error)) from error
    finally:
        cluster.stop()
        for number, handler in before.items():
            signal.signal(number, handler)


def _controllers(options: argparse.Namespace) -> Controllers | None:
    """Return the requested controllers. --kafka-home alone requests one of Apache Kafka's."""
    chosen: Controllers | None = options.controllers
    if options.kafka_home is None:
        return chosen
    if chosen is not None and not chosen.is_kafka:
        raise CommandError("--kafka-home is for Apache Kafka's controllers: give --controllers kafka, or leave it out")
    return chosen or Controllers(is_kafka=True)


def _kafka(options: argparse.Namespace) -> KafkaProgram:
    java = find_java("A controller of Apache Kafka")
    if options.kafka_home is not None:
        return KafkaProgram(java, tuple(installed_jars(Path(options.kafka_home).absolute())))
    jars = controller_jars()
    repository = MavenRepository.chosen()
    missing = repository.missing(jars.artifacts)
    size = sum(one.size for one in missing)
    if missing:
        _print_progress(
            f"downloading Apache Kafka {jars.version}: {count_text(len(missing), 'jar')}, {size_text(size)}, "
            f"from {repository.url}"
        )
    with Progress(size) as progress:
        try:
            return KafkaProgram(java, tuple(repository.fetch(jars.artifacts, progress.advance)))
        except CannotFetch as error:
            raise CannotFetch(
                f"{error} (set {VARIABLE} to another repository, or --kafka-home to an installed Apache Kafka)"
            ) from error


def _show(cluster: LocalCluster, *, is_json: bool) -> None:
    plan = cluster.plan
    if is_json:
        print_lines(
            json_document({"bootstrap": plan.bootstrap, "clusterId": plan.cluster_id, "nodes": _nodes(cluster)})
        )
    else:
        rows = [
            (one.node.name, one.node.address, one.pid, _short(one.node.data), _short(one.node.log))
            for one in cluster.processes
        ]
        print_lines("", *table(["<NODE", "<ADDRESS", "PID", "<DATA", "<LOG"], rows), "")
        print_lines(f"bootstrap servers: {plan.bootstrap}")
        print_lines(f"try: tailrace cluster status --bootstrap {plan.brokers[0].address}")
        print_lines("Ctrl-C stops the cluster; the same command starts it again with the same data")
    sys.stdout.flush()


def _nodes(cluster: LocalCluster) -> list[dict[str, Any]]:
    return [
        {
            "role": one.node.role,
            "id": one.node.node_id,
            "address": one.node.address,
            "pid": one.pid,
            "data": str(one.node.data),
            "log": str(one.node.log),
            "config": str(one.node.settings_file),
        }
        for one in cluster.processes
    ]


def _short(path: Path) -> str:
    """Return a path below the working directory as a relative path."""
    return os.path.relpath(path) if path.is_relative_to(Path.cwd()) else str(path)


def _print_progress(text: str) -> None:
    print(f"tailrace: {text}", file=sys.stderr, flush=True)


def _on_signals(act: Callable[[], None]) -> dict[signal.Signals, Any]:
    """Call `act` on SIGINT and SIGTERM. Return the previous handlers."""
    return {number: signal.signal(number, lambda *_: act()) for number in (signal.SIGINT, signal.SIGTERM)}
