"""Options of `tailrace tier`: verify and gc."""

from __future__ import annotations

import argparse

from tailrace.cli.parsing.options import Parsers, add_cluster, add_json, add_yes, described


def add_tier(commands: Parsers) -> None:
    tier = described(
        commands.add_parser("tier", help="check the remote store of tiered storage: verify, gc"),
        """
        Compare the files in the remote store of a cluster with the metadata of the cluster. Brokers may be running, and
        what they copy or delete at that time is not reported.
        """,
        """
        examples:
          tailrace tier verify /mnt/shared
          tailrace tier gc s3://bucket/prefix
          tailrace tier gc s3://bucket/prefix --yes
        """,
    )
    verbs = tier.add_subparsers(title="verbs", metavar="VERB", required=True)
    verify = described(
        verbs.add_parser("verify", help="report files without a segment, and segments without files"),
        """
        Report files of copies and deletions that were not completed, uploads that were not completed, files of topics
        that the cluster has never tiered, and segments that lack files. The exit status is 1 if there are any.
        """,
        """
        examples:
          tailrace tier verify /mnt/shared
          tailrace tier verify s3://bucket/prefix --json
        """,
    )
    _add_store(verify)
    add_json(verify, "one JSON document")
    verify.set_defaults(run="tailrace.cli.cluster.tier:verify")
    gc = described(
        verbs.add_parser("gc", help="delete files without a segment, with --yes"),
        """
        Delete files of copies and deletions that were not completed, and uploads that were not completed. Files of
        topics that the cluster has never tiered may belong to another cluster, and stay without --foreign. The exit
        status is 1 if there is something to delete, or a segment lacks files.
        """,
        """
        examples:
          tailrace tier gc s3://bucket/prefix
          tailrace tier gc s3://bucket/prefix --yes
        """,
    )
    _add_store(gc)
    gc.add_argument(
        "--foreign", action="store_true", help="delete files of topics that the cluster has never tiered, too"
    )
    add_yes(gc, "delete the files")
    add_json(gc, "one JSON document")
    gc.set_defaults(run="tailrace.cli.cluster.tier:gc")


def _add_store(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "store", metavar="STORE", help="folder or bucket: /mnt/shared, s3://bucket/prefix, gs://bucket/prefix"
    )
    add_cluster(parser)
