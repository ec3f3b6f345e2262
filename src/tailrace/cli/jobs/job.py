"""Options and the Spark session that all verbs of `tailrace job` share."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias

from tailrace.cli.errors import CommandError
from tailrace.cli.output import report_progress
from tailrace.cli.parsing.options import add_json, natural

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
