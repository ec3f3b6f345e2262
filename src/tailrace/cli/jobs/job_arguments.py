"""Options of `tailrace job`: work over whole logs on Spark.

Each verb is a module. Its function `add(verbs)` adds the parser, which names the function that runs the verb. Spark is
imported when that function runs, not before.
"""

from __future__ import annotations

from tailrace.cli.jobs import compact, diff, export, load, profile, reindex, replay, verify
from tailrace.cli.parsing.options import Parsers, described

# In the order of the help.
VERBS = (verify, reindex, compact, export, diff, replay, load, profile)


def add_job(commands: Parsers) -> None:
    job = described(
        commands.add_parser(
            "job", help="work over whole logs on Spark: verify, reindex, compact, export, diff, replay, load, profile"
        ),
        """
        Run work over whole logs as Spark jobs, on all cores of this machine, or on a Spark cluster with --master. On a
        cluster every worker must see the files under the same path. Install Spark with `pip install 'tailrace[spark]'`;
        it needs Java 17 or newer.

        Exit status: 0 success, 1 problems found, 2 the job cannot run as requested (nothing was changed),
        130 interrupted.
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
    verbs = job.add_subparsers(title="verbs", metavar="VERB", required=True)
    for verb in VERBS:
        verb.add(verbs)
