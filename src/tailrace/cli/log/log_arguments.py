"""Options of `tailrace log`: ls, cat, dump, explain, verify and repair."""

from __future__ import annotations

import argparse

from tailrace.cli.options import ENCODINGS, Parsers, add_json, described, positive, timestamp


def add_log(nouns: Parsers) -> None:
    log = described(
        nouns.add_parser("log", help="look into a data directory: ls, cat, dump, explain, verify, repair"),
        """
        Look into a Kafka data directory, Apache Kafka's or Tailrace's, without a broker. Nothing is changed, except by
        `repair --yes`. The directory may be in use: what a running broker changes meanwhile is taken as it comes.
        """,
        """
        examples:
          tailrace log ls /var/lib/kafka --segments
          tailrace log cat /var/lib/kafka --topic orders --partition 0 --from-offset 100 --max 10
          tailrace log dump /var/lib/kafka/orders-0/00000000000000000000.log --records
          tailrace log explain /var/lib/kafka/orders-0 --timestamp 2026-01-31T12:00:00Z
          tailrace log verify /var/lib/kafka
          tailrace log repair /var/lib/kafka
        """,
    )
    verbs = log.add_subparsers(title="what to do", metavar="VERB", required=True)
    _add_ls(verbs)
    _add_cat(verbs)
    _add_dump(verbs)
    _add_explain(verbs)
    _add_verify(verbs)
    _add_repair(verbs)


def _add_ls(verbs: Parsers) -> None:
    ls = described(
        verbs.add_parser("ls", help="partitions, sizes, offsets, times, leader epochs"),
        """
        List partitions with their sizes, bounds, time range and latest leader epoch. No segment is read as a whole, so
        a large directory is listed as quickly as a small one. FROM is the first batch's time, TO the largest there is.
        Times are UTC.
        """,
        """
        examples:
          tailrace log ls /var/lib/kafka
          tailrace log ls /var/lib/kafka --topic orders --segments
          tailrace log ls /var/lib/kafka --json | jq '.partitions[] | select(.size > 1e9) | .name'
        """,
    )
    _add_directory(ls)
    ls.add_argument("--segments", action="store_true", help="a line for each segment")
    add_json(ls, "one JSON document")
    ls.set_defaults(run="tailrace.cli.log.ls:run")


def _add_cat(verbs: Parsers) -> None:
    cat = described(
        verbs.add_parser("cat", help="the records"),
        """
        Print records, one a line, up to the end of the log (a broker would stop at the high watermark). All partitions
        are printed, one after the other, unless some are named. Control records are not shown.

        TIME is milliseconds since 1970 or ISO 8601, in UTC if it names no zone: 2026-01-31, 2026-01-31T12:00:00+02:00.
        A batch that is damaged is reported and passed over; the exit status is then 1.
        """,
        """
        examples:
          tailrace log cat /var/lib/kafka --topic orders --max 10
          tailrace log cat /var/lib/kafka/orders-0 --from-offset 100 --to-offset 200 --json
          tailrace log cat /var/lib/kafka --topic orders --from-timestamp 2026-01-31 --isolation read_committed
          tailrace log cat /var/lib/kafka --topic orders --key customer-7 --grep '"total":[0-9]{4}'
        """,
    )
    _add_directory(cat)
    cat.add_argument(
        "--from-offset", metavar="N", type=int, help="start here, or where the log starts if that is later"
    )
    cat.add_argument("--to-offset", metavar="N", type=int, help="stop before this offset")
    cat.add_argument("--from-timestamp", metavar="TIME", type=timestamp, help="only records of this time or later")
    cat.add_argument("--to-timestamp", metavar="TIME", type=timestamp, help="only records before this time")
    cat.add_argument(
        "--isolation",
        choices=("read_committed", "read_uncommitted"),
        default="read_uncommitted",
        help="read_committed leaves out aborted transactions and stops at the first open one",
    )
    cat.add_argument(
        "--encoding",
        choices=ENCODINGS,
        default="utf8",
        help="of keys, values and header values; what is not UTF-8 is shown in base64, and says so (default: utf8)",
    )
    cat.add_argument("--key", metavar="TEXT", help="only records with exactly this key")
    cat.add_argument("--grep", metavar="REGEX", help="only records whose key or value matches, as text")
    cat.add_argument("--header", metavar="NAME[=VALUE]", help="only records with this header")
    cat.add_argument("--max", metavar="N", type=positive, help="at most so many records")
    add_json(cat, "one object a line: offset, timestamp, key, value, headers")
    cat.add_argument(
        "--more",
        action="store_true",
        help="in JSON also topic, partition, timestampType, leaderEpoch, producerId, producerEpoch, sequence",
    )
    cat.set_defaults(run="tailrace.cli.log.cat:run")


def _add_dump(verbs: Parsers) -> None:
    dump = described(
        verbs.add_parser("dump", help="what is in the files, as kafka-dump-log shows it"),
        """
        Show what the files contain: batches of a .log, entries of an .index, .timeindex or .txnindex, producers of a
        .snapshot, lines of a checkpoint. The lines are those of Apache Kafka's kafka-dump-log. PATH is a file, or a
        directory whose files are shown one after the other. Records of __consumer_offsets, __transaction_state,
        __share_group_state and __cluster_metadata are decoded.
        """,
        """
        examples:
          tailrace log dump /var/lib/kafka/orders-0/00000000000000000000.log
          tailrace log dump /var/lib/kafka/orders-0/00000000000000000000.log --print-data
          tailrace log dump /var/lib/kafka/orders-0 --only index
          tailrace log dump /var/lib/kafka --topic __consumer_offsets --only log --print-data --json
        """,
    )
    _add_directory(dump, metavar="PATH", what="a file, a partition's folder or a data directory")
    dump.add_argument(
        "--only",
        metavar="KIND",
        action="append",
        choices=("log", "index", "timeindex", "txnindex", "snapshot", "checkpoint"),
        help="only files of this kind: log, index, timeindex, txnindex, snapshot, checkpoint (may be repeated)",
    )
    dump.add_argument("--records", action="store_true", help="the records inside each batch too")
    dump.add_argument("--print-data", action="store_true", help="the records with their keys and values")
    dump.add_argument(
        "--encoding", choices=ENCODINGS, default="utf8", help="of keys and values with --print-data (default: utf8)"
    )
    dump.add_argument("--max-bytes", metavar="N", type=positive, help="read so much of each .log at most")
    add_json(dump, "one object a line")
    dump.set_defaults(run="tailrace.cli.log.dump:run")


def _add_explain(verbs: Parsers) -> None:
    explain = described(
        verbs.add_parser("explain", help="how one read finds its bytes, step by step"),
        """
        Walk through one read as a broker would do it: the bound it may not pass, the segment, each probe of the index,
        the batches walked, the slice of the file, the aborted transactions, and what it cost.
        """,
        """
        examples:
          tailrace log explain /var/lib/kafka --topic orders --partition 0 --offset 4711
          tailrace log explain /var/lib/kafka/orders-0 --timestamp 2026-01-31T12:00:00Z
          tailrace log explain /var/lib/kafka/orders-0 --offset 4711 --isolation read_committed --json
        """,
    )
    _add_directory(explain)
    target = explain.add_mutually_exclusive_group(required=True)
    target.add_argument("--offset", metavar="N", type=int, help="read from this offset")
    target.add_argument(
        "--timestamp",
        metavar="TIME",
        type=timestamp,
        help="look up the first record at or after this time, then read from it",
    )
    explain.add_argument(
        "--isolation",
        choices=("log_end", "read_uncommitted", "read_committed"),
        default="read_uncommitted",
        help="how far the reader may read (default: read_uncommitted, the high watermark)",
    )
    explain.add_argument(
        "--max-bytes", metavar="N", type=positive, default=1_048_576, help="as a fetch would ask for (default: 1 MB)"
    )
    add_json(explain, "one JSON document")
    explain.set_defaults(run="tailrace.cli.log.explain:run")


def _add_verify(verbs: Parsers) -> None:
    verify = described(
        verbs.add_parser("verify", help="check every batch, index and snapshot"),
        """
        Read every segment and check it: checksums, order of offsets, records inside the batches (with --deep), indexes
        against the log, aborted transactions, producer snapshots, leader epochs, checkpoints, file names.

        Exit status: 0 if all is well, 1 if there are problems, 2 if the directory cannot be looked at.
        """,
        """
        examples:
          tailrace log verify /var/lib/kafka
          tailrace log verify /var/lib/kafka/orders-0 --deep
          tailrace log verify /var/lib/kafka --json | jq '.problems[]'
        """,
    )
    _add_directory(verify)
    verify.add_argument("--deep", action="store_true", help="decompress and decode every record")
    add_json(verify, "one JSON document")
    verify.set_defaults(run="tailrace.cli.log.verify:run")


def _add_repair(verbs: Parsers) -> None:
    repair = described(
        verbs.add_parser("repair", help="rebuild indexes, cut a torn tail"),
        """
        Find what verify finds and mend what can be mended: indexes, producer snapshots and leader epochs are rebuilt
        from the log, a torn tail is cut off and kept beside it as a .broken file. Without --yes it only says what it
        would do. The directory must not be in use.

        A damaged batch with whole batches behind it is left alone, unless --cut-damaged is given: the log then ends
        before it, and everything behind is kept as .broken.
        """,
        """
        examples:
          tailrace log repair /var/lib/kafka
          tailrace log repair /var/lib/kafka --yes
          tailrace log repair /var/lib/kafka --topic orders --partition 3 --cut-damaged --yes
        """,
    )
    _add_directory(repair)
    how = repair.add_mutually_exclusive_group()
    how.add_argument("--yes", action="store_true", help="do it")
    how.add_argument("--dry-run", action="store_true", help="only say what would be done (the default)")
    repair.add_argument("--cut-damaged", action="store_true", help="end the log before a damaged batch")
    add_json(repair, "one JSON document")
    repair.set_defaults(run="tailrace.cli.log.repair:run")


def _add_directory(
    parser: argparse.ArgumentParser, metavar: str = "DIR", what: str = "a data directory or a partition's folder"
) -> None:
    parser.add_argument("directory", metavar=metavar, help=what)
    parser.add_argument("--topic", metavar="NAME", action="append", help="only this topic (may be repeated)")
    parser.add_argument("--partition", metavar="N", type=int, action="append", help="only this partition number")
