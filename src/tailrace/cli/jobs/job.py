"""Options and the Spark session that all verbs of `tailrace job` share."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias

from tailrace.cli.errors import CommandError
from tailrace.cli.output import report_progress
from tailrace.cli.parsing.options import COMMAND_CONFIG, PROFILE, add_client, add_json, natural, seconds

Verbs: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"


def add_directories(parser: argparse.ArgumentParser) -> None:
    """Add the options of jobs that work on files: directories, topics and partitions."""
    parser.add_argument("directory", metavar="DIR", nargs="+", help="data directory, or the folder of one partition")
    parser.add_argument(
        "--topic", metavar="TOPIC", action="append", default=[], help="only this topic (may be repeated)"
    )
    parser.add_argument(
        "--partition",
        metavar="N",
        action="append",
        type=natural,
        default=[],
        help="only this partition (may be repeated)",
    )


def add_settings(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--config",
        "-o",
        dest="override",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        help="topic config that overrides the metadata in the directory (may be repeated)",
    )


def add_connection(parser: argparse.ArgumentParser, other: str | None = None) -> None:
    """Add the options of jobs that connect to clusters; `other` is the word for a second cluster."""
    group = parser.add_argument_group("connection")
    group.add_argument("--profile", metavar="NAME", help=f"{PROFILE}, for its settings; the address is an argument")
    add_client(group)
    if other is not None:
        word = other.lower()
        only = f"for {other}, instead of the other settings"
        group.add_argument(f"--{word}-profile", metavar="NAME", help=f"{PROFILE}, {only}")
        group.add_argument(f"--{word}-command-config", metavar="FILE", help=f"{COMMAND_CONFIG}; {only}")
    group.add_argument(
        "--timeout",
        metavar="SECONDS",
        type=seconds,
        default=60.0,
        help="time limit of a request with its retries (default: 60)",
    )


def client_of(options: argparse.Namespace) -> dict[str, str]:
    """Return the settings of the Kafka client of a job."""
    from tailrace.cli.connection.client_properties import client_mapping, client_properties
    from tailrace.cli.connection.profiles import chosen_profile

    sources = chosen_profile(options), options.command_config, options.client_settings
    client_properties(*sources)
    return {**client_mapping(*sources), **_time_limits(options)}


def other_client(options: argparse.Namespace, other: str) -> dict[str, str] | None:
    """Return the settings for a second cluster; None if they are those of the first one."""
    from tailrace.cli.connection.client_properties import client_mapping, client_properties
    from tailrace.cli.connection.profiles import NO_PROFILE, profiles_path, read_profile

    name, config = (getattr(options, f"{other.lower()}_{what}") for what in ("profile", "command_config"))
    if name is None and config is None:
        return None
    sources = NO_PROFILE if name is None else read_profile(profiles_path(), name), config, ()
    client_properties(*sources)
    return {**client_mapping(*sources), **_time_limits(options)}


def _time_limits(options: argparse.Namespace) -> dict[str, str]:
    timeout_ms = max(1, int(options.timeout * 1000))
    return {
        "default.api.timeout.ms": str(timeout_ms),
        "request.timeout.ms": str(min(30_000, timeout_ms)),
        "socket.connection.setup.timeout.ms": str(min(10_000, timeout_ms)),
    }


def add_spark(parser: argparse.ArgumentParser) -> None:
    """Add the options of every job: --master, --conf and --json."""
    group = parser.add_argument_group("Spark")
    group.add_argument(
        "--master",
        default="local[*]",
        help="Spark master: local[N] for N cores of this machine, spark://HOST:PORT, yarn, k8s://… (default: local[*])",
    )
    group.add_argument(
        "--conf",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        type=_conf,
        help="Spark setting, such as spark.driver.memory=4g (may be repeated)",
    )
    add_json(parser, "one JSON document")


def _conf(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals or not key.startswith("spark."):
        raise argparse.ArgumentTypeError(f"{text!r} is not a Spark setting: write spark.NAME=VALUE")
    return key, value


@contextmanager
def spark_for(options: argparse.Namespace, name: str) -> Iterator[Any]:
    """Yield a Spark session for one job. A JobError is raised as a CommandError."""
    from tailrace.spark.jobs.errors import JobError
    from tailrace.spark.jobs.spark_session import job_session
    from tailrace.spark.jobs.task_progress import progress_lines

    try:
        with (
            job_session(name, master=options.master, confs=dict(options.conf)) as spark,
            progress_lines(report_progress),
        ):
            yield spark
    except JobError as error:
        raise CommandError(str(error), status=error.status) from None
