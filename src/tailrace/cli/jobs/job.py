"""`tailrace job`: whole-log work on Spark. The verbs register themselves; this is what they share.

A verb is a module `tailrace.cli.job_<verb>` with `add(verbs)`, which adds its parser, and the function that its parser
names as `run`. Nothing of Spark is imported before that function runs.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any, TypeAlias

from tailrace.cli.arguments import add_json, described
from tailrace.cli.errors import CommandError

Verbs: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"

# In the order of the help.
VERBS = ("verify", "reindex", "compact", "export", "diff", "replay", "load", "profile")


def add_job(nouns: Verbs) -> None:
    job = described(
        nouns.add_parser(
            "job", help="work over whole logs on Spark: verify, reindex, compact, export, diff, replay, load, profile"
        ),
        """
        Work over whole logs as Spark jobs: on this machine with all its cores, or on a cluster with --master, where
        every worker sees the files under the same path. `pip install 'tailrace[spark]'` brings Spark, which needs
        Java 17 or newer.

        Exit status: 0 if all went well, 1 if problems were found, 2 if the job cannot be done as asked (nothing was
        changed then), 130 if it was interrupted.
        """,
        """
        examples:
          tailrace job verify /var/lib/kafka
          tailrace job verify /var/lib/kafka --deep --state /var/tmp/verified --json
          tailrace job reindex /var/lib/kafka --topic orders --output /var/tmp/indexes
          tailrace job compact /var/lib/kafka --topic customers
          tailrace job export /var/lib/kafka /tables/orders --topic orders --partition-by date
          tailrace job verify /var/lib/kafka --master 'local[4]' --conf spark.driver.memory=4g
        """,
    )
    verbs = job.add_subparsers(title="what to do", metavar="VERB", required=True)
    for verb in VERBS:
        import_module(f"tailrace.cli.jobs.{verb}").add(verbs)


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
