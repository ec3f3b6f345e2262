"""`tailrace job`: whole-log work on Spark.

A verb is a module with `add(verbs)`, which adds its parser, and the function that its parser names as `run`. Nothing
of Spark is imported before that function runs.
"""

from __future__ import annotations

from tailrace.cli.jobs import compact, diff, export, load, profile, reindex, replay, verify
from tailrace.cli.options import Parsers, described

# In the order of the help.
VERBS = (verify, reindex, compact, export, diff, replay, load, profile)


def add_job(nouns: Parsers) -> None:
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
        verb.add(verbs)
