"""`tailrace cluster up`: controllers of Apache Kafka and brokers of ours on this machine, until Ctrl-C.

What is being done goes to standard error, line by line; where to connect goes to standard output when clients can.
SIGINT and SIGTERM stop the brokers, which hand over what they lead, and then the controllers; a second one kills. A
node that ends by itself is told of and the others go on; without any broker left the command ends, with status 1.
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
from tailrace.cli.output import count_text, json_document, say, size_text, table
from tailrace.cli.progress import Progress
from tailrace.cli.serving.serve import parse_overrides
from tailrace.java import JavaMissing, find_java
from tailrace.local_cluster.cluster import CannotStart, LocalCluster, StopAsked
from tailrace.local_cluster.kafka_program import KafkaProgram, NoKafka, controller_jars, installed_jars
from tailrace.local_cluster.maven import VARIABLE, CannotFetch, MavenRepository
from tailrace.local_cluster.plan import CannotPlan, plan_cluster
from tailrace.model.topic_config import InvalidConfig
from tailrace.node.serving import split_settings

_POLL_S: Final = 0.2
NO_BROKER_LEFT: Final = 1


def run(options: argparse.Namespace) -> int:
    try:
        plan = plan_cluster(
            Path(options.data).absolute(),
            brokers=options.brokers,
            controllers=options.controllers,
            port=options.port,
            metrics_port=options.metrics_port,
            overrides=parse_overrides(options.override),
        )
        config, _ = split_settings(plan.brokers[0].settings)
        for warning in config.warnings:
            _tell(warning)
        kafka = _kafka(options)
    except (CannotPlan, InvalidConfig, NoKafka, JavaMissing, CannotFetch) as error:
        raise CommandError(str(error)) from error
    cluster = LocalCluster(plan, kafka, _tell, log_level=options.log_level)
    before = _on_signals(cluster.ask_to_stop)
    try:
        cluster.start()
        _show(cluster, is_json=options.json)
        while not cluster.times_asked_to_stop:
            if not cluster.watch_once():
                _tell("no broker is left")
                return NO_BROKER_LEFT
            time.sleep(_POLL_S)
        return 0
    except StopAsked:
        return 0
    except CannotStart as error:
        raise CommandError(str(error)) from error
    finally:
        cluster.stop()
        for number, handler in before.items():
            signal.signal(number, handler)


def _kafka(options: argparse.Namespace) -> KafkaProgram:
    java = find_java("A controller of Apache Kafka")
    if options.kafka_home is not None:
        return KafkaProgram(java, tuple(installed_jars(Path(options.kafka_home).absolute())))
    jars = controller_jars()
    repository = MavenRepository.chosen()
    missing = repository.missing(jars.artifacts)
    size = sum(one.size for one in missing)
    if missing:
        _tell(
            f"fetching Apache Kafka {jars.version}: {count_text(len(missing), 'jar')}, {size_text(size)}, "
            f"from {repository.url}"
        )
    with Progress(size) as progress:
        try:
            return KafkaProgram(java, tuple(repository.fetch(jars.artifacts, progress.advance)))
        except CannotFetch as error:
            raise CannotFetch(
                f"{error} ({VARIABLE} names another repository, --kafka-home an installation of Apache Kafka)"
            ) from error


def _show(cluster: LocalCluster, *, is_json: bool) -> None:
    plan = cluster.plan
    if is_json:
        say(json_document({"bootstrap": plan.bootstrap, "clusterId": plan.cluster_id, "nodes": _nodes(cluster)}))
    else:
        rows = [
            (one.node.name, one.node.address, one.pid, _short(one.node.data), _short(one.node.log))
            for one in cluster.processes
        ]
        say("", *table(["<NODE", "<ADDRESS", "PID", "<DATA", "<LOG"], rows), "")
        say(f"bootstrap servers: {plan.bootstrap}")
        say(f"try: tailrace cluster status --bootstrap {plan.brokers[0].address}")
        say("Ctrl-C stops it; the same command goes on with the same data")
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
    """Relative where that is shorter to read."""
    return os.path.relpath(path) if path.is_relative_to(Path.cwd()) else str(path)


def _tell(text: str) -> None:
    print(f"tailrace: {text}", file=sys.stderr, flush=True)


def _on_signals(act: Callable[[], None]) -> dict[signal.Signals, Any]:
    """Have something done when a signal asks for an end; who had these signals before."""
    return {number: signal.signal(number, lambda *_: act()) for number in (signal.SIGINT, signal.SIGTERM)}
