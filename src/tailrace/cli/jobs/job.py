"""Options and the Spark session that all verbs of `tailrace job` share."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias

from tailrace.cli.errors import CommandError
from tailrace.cli.options import add_json

Verbs: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"


def add_directories(parser: argparse.ArgumentParser) -> None:
    """What a job over files works on."""
    parser.add_argument("directory", metavar="DIR", nargs="+", help="a data directory, or a partition's folder in one")
    parser.add_argument("--topic", action="append", default=[], help="only this topic (may be repeated)")
    parser.add_argument(
        "--partition", metavar="N", action="append", type=int, default=[], help="only this partition (may be repeated)"
    )


def add_settings(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-o",
        dest="override",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        help="a topic setting, over those of the directory's metadata (may be repeated)",
    )


def add_spark(parser: argparse.ArgumentParser) -> None:
    """The options that every job has."""
    group = parser.add_argument_group("Spark")
    group.add_argument(
        "--master",
        default="local[*]",
        help="where to run: local[N] for N cores here, spark://HOST:PORT, yarn, k8s://… (default: local[*])",
    )
    group.add_argument(
        "--conf",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        type=_conf,
        help="a setting of Spark, such as spark.driver.memory=4g (may be repeated)",
    )
    add_json(parser, "one JSON document")


def _conf(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals or not key.startswith("spark."):
        raise argparse.ArgumentTypeError(f"{text!r} is no setting of Spark: give spark.SOMETHING=VALUE")
    return key, value


@contextmanager
def spark_for(options: argparse.Namespace, name: str) -> Iterator[Any]:
    """A Spark session for one job. A JobError becomes the command's one sentence."""
    from tailrace.spark.jobs.errors import JobError
    from tailrace.spark.jobs.session import job_session

    try:
        with job_session(name, master=options.master, confs=dict(options.conf)) as spark:
            yield spark
    except JobError as error:
        raise CommandError(str(error), status=error.status) from None
