"""`tailrace job reindex`: the indexes of sealed segments made anew, on Spark."""

from __future__ import annotations

import argparse

from tailrace.cli.jobs.job import Verbs, add_directories, add_settings, add_spark, spark_for
from tailrace.cli.options import described
from tailrace.cli.output import count_text, json_document, say, size_text


def add(verbs: Verbs) -> None:
    reindex = described(
        verbs.add_parser("reindex", help="make .index, .timeindex and .txnindex of sealed segments anew"),
        """
        Read every sealed segment and write its indexes as recovery would. They take the old ones' place when all of
        them are there, and only if no broker runs; with --output they go into a directory of their own, laid out
        like the data directory, and the log is left alone. A damaged batch ends the job, and nothing is changed.
        """,
        """
        examples:
          tailrace job reindex /var/lib/kafka --topic orders
          tailrace job reindex /var/lib/kafka --output /var/tmp/indexes
        """,
    )
    add_directories(reindex)
    add_settings(reindex)
    reindex.add_argument("--output", metavar="DIR", help="write the indexes here, and change nothing else")
    add_spark(reindex)
    reindex.set_defaults(run="tailrace.cli.jobs.reindex:run")


def run(options: argparse.Namespace) -> int:
    from tailrace.cli.jobs.settings import settings_of
    from tailrace.spark.jobs.verify.reindex import reindex

    configs = settings_of(options)
    with spark_for(options, "reindex") as spark:
        found = reindex(
            spark,
            options.directory,
            topics=options.topic,
            partitions=options.partition,
            configs=configs,
            output=options.output,
        )
    if options.json:
        changed = [{"file": one.path, "size": one.size, "removed": one.new_path is None} for one in found.changed]
        say(
            json_document(
                {
                    "segments": found.segments,
                    "bytesRead": found.bytes_read,
                    "indexes": sum(one.new_path is not None for one in found.indexes),
                    "output": found.output,
                    "changed": changed,
                }
            )
        )
        return 0
    for one in found.changed:
        say(f"{one.path}: {'is gone' if one.new_path is None else f'is new, {size_text(one.size)}'}")
    where = f"written to {found.output}" if found.output else "put in place"
    say(
        f"indexes of {count_text(found.segments, 'segment')} ({size_text(found.bytes_read)} read) {where}, "
        f"{count_text(len(found.changed), 'file')} {'differs' if len(found.changed) == 1 else 'differ'} from before"
    )
    return 0
