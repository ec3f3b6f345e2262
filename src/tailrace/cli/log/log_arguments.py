"""Options of `tailrace log`: ls, map, cat, dump, explain, verify and repair."""

from __future__ import annotations

import argparse

from tailrace.cli.parsing.options import ENCODINGS, Parsers, add_json, described, natural, positive, timestamp


def add_log(commands: Parsers) -> None:
    log = described(
        commands.add_parser("log", help="inspect a data directory: ls, map, cat, dump, explain, verify, repair"),
        """
        Inspect a data directory of Tailrace or Apache Kafka without a broker. Only `repair --yes` changes files. A
        broker may be running on the directory; its writes may or may not be visible to the command.
        ls, cat, explain and verify also read the remote segments of tiered storage: a folder or bucket in the layout of
        Kafka's LocalTieredStorage or of Aiven's plugin.
        """,
        """
        examples:
          tailrace log ls /var/lib/kafka --segments
          tailrace log cat s3://bucket/tier --topic orders --max 10
          tailrace log cat /var/lib/kafka --topic orders --partition 0 --from-offset 100 --max 10
          tailrace log dump /var/lib/kafka/orders-0/00000000000000000000.log --records
          tailrace log explain /var/lib/kafka/orders-0 --at 2026-01-31T12:00:00Z
          tailrace log verify /var/lib/kafka
          tailrace log repair /var/lib/kafka
        """,
    )
    verbs = log.add_subparsers(title="verbs", metavar="VERB", required=True)
    _add_ls(verbs)
    _add_map(verbs)
    _add_cat(verbs)
    _add_dump(verbs)
    _add_explain(verbs)
    _add_verify(verbs)
    _add_repair(verbs)


def _add_ls(verbs: Parsers) -> None:
    ls = described(
        verbs.add_parser("ls", help="list partitions: sizes, offsets, times, leader epochs"),
        """
        List partitions with their size, offsets, time range and latest leader epoch. FROM is the timestamp of the first
        batch, TO the largest timestamp, both in UTC. Segments are not read completely, so large directories are listed
        quickly.
        """,
        """
        examples:
          tailrace log ls /var/lib/kafka
          tailrace log ls /var/lib/kafka --topic orders --segments
          tailrace log ls /var/lib/kafka --json | jq '.partitions[] | select(.size > 1e9) | .name'
        """,
    )
    _add_directory(ls)
    ls.add_argument("--segments", action="store_true", help="list every segment")
    add_json(ls, "one JSON document")
    ls.set_defaults(run="tailrace.cli.log.ls:run")


def _add_map(verbs: Parsers) -> None:
    parser = described(
        verbs.add_parser(
            "map", help="show what retention deletes and compaction rewrites next, and where transactions are"
        ),
        """
        Map one partition: its segments with the density of their index from the first byte to the last, its open and
        aborted transactions, and what retention will delete and compaction rewrite next. The configs of the topic are
        those in the directory's metadata; --config overrides them, and names those that a broker's own settings change.
        """,
        """
        examples:
          tailrace log map /var/lib/kafka --topic orders --partition 0
          tailrace log map /var/lib/kafka/orders-0 --config retention.ms=3600000
          tailrace log map /var/lib/kafka/orders-0 --json | jq '.segments[] | select(.deletion)'
        """,
    )
    _add_directory(parser)
    parser.add_argument(
        "--config",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        help="config of the topic to assume (may be repeated)",
    )
    add_json(parser, "one JSON document")
    parser.set_defaults(run="tailrace.cli.log.map:run")


def _add_times(cat: argparse.ArgumentParser) -> None:
    cat.add_argument(
        "--from-time",
        "--from-timestamp",
        dest="from_timestamp",
        metavar="TIME",
        type=timestamp,
        help="only records at or after this time",
    )
    cat.add_argument(
        "--to-time",
        "--to-timestamp",
        dest="to_timestamp",
        metavar="TIME",
        type=timestamp,
        help="only records before this time",
    )


def _add_cat(verbs: Parsers) -> None:
    cat = described(
        verbs.add_parser("cat", help="print records"),
        """
        Print records, one per line, partition by partition, up to the end of the log (a broker would stop at the high
        watermark). Control records are not shown.

        TIME is milliseconds since 1970, or ISO 8601 (UTC if it has no time zone): 2026-01-31,
        2026-01-31T12:00:00+02:00. A damaged batch is reported and skipped; the exit status is then 1.
        """,
        """
        examples:
          tailrace log cat /var/lib/kafka --topic orders --max 10
          tailrace log cat /var/lib/kafka/orders-0 --from-offset 100 --to-offset 200 --json
          tailrace log cat /var/lib/kafka --topic orders --from-time 2026-01-31 --isolation read_committed
          tailrace log cat /var/lib/kafka --topic orders --key customer-7 --grep '"total":[0-9]{4}'
        """,
    )
    _add_directory(cat)
    cat.add_argument(
        "--from-offset", metavar="N", type=natural, help="first offset to print (default: the start of the log)"
    )
    cat.add_argument("--to-offset", metavar="N", type=natural, help="stop before this offset")
    _add_times(cat)
    cat.add_argument(
        "--isolation",
        choices=("read_committed", "read_uncommitted"),
        default="read_uncommitted",
        help="read_committed skips aborted transactions and stops at the first open one (default: read_uncommitted)",
    )
    cat.add_argument(
        "--encoding",
        choices=ENCODINGS,
        default="utf8",
        help="encoding of printed keys, values and header values; bytes that are not UTF-8 are printed as base64 and "
        "marked so (default: utf8)",
    )
    cat.add_argument("--key", metavar="TEXT", help="only records with exactly this key")
    cat.add_argument("--grep", metavar="REGEX", help="only records whose key or value, as text, contains a match")
    cat.add_argument("--header", metavar="NAME[=VALUE]", help="only records with this header")
    cat.add_argument(
        "--where", metavar="EXPRESSION", help="only records for which this is true, see `tailrace consume`"
    )
    cat.add_argument("--max", metavar="N", type=positive, help="maximum number of records to print (default: all)")
    add_json(cat, "one JSON object per line: offset, timestamp, key, value, headers")
    cat.add_argument(
        "--more",
        action="store_true",
        help="more fields in JSON: topic, partition, timestampType, leaderEpoch, producerId, producerEpoch, sequence",
    )
    cat.set_defaults(run="tailrace.cli.log.cat:run")


def _add_dump(verbs: Parsers) -> None:
    dump = described(
        verbs.add_parser("dump", help="print the contents of log files like kafka-dump-log"),
        """
        Print the contents of log files in the format of Apache Kafka's kafka-dump-log: batches of a .log, entries of an
        .index, .timeindex or .txnindex, producers of a .snapshot, lines of a checkpoint. PATH is a file, or a directory
        whose files are printed one after the other. Records of __consumer_offsets, __transaction_state,
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
    _add_directory(dump, metavar="PATH", what="file, folder of one partition, or data directory")
    dump.add_argument(
        "--only",
        metavar="KIND",
        action="append",
        choices=("log", "index", "timeindex", "txnindex", "snapshot", "checkpoint"),
        help="only files of this kind: log, index, timeindex, txnindex, snapshot, checkpoint (may be repeated)",
    )
    dump.add_argument("--records", action="store_true", help="print the records of each batch as well")
    dump.add_argument("--print-data", action="store_true", help="print the records with their keys and values")
    dump.add_argument(
        "--encoding",
        choices=ENCODINGS,
        default="utf8",
        help="encoding of keys and values for --print-data (default: utf8)",
    )
    dump.add_argument(
        "--max-bytes", metavar="N", type=positive, help="maximum number of bytes to print of each .log (default: all)"
    )
    dump.add_argument(
        "--segment", metavar="OFFSET", type=natural, help="only files of the segment with this base offset"
    )
    dump.add_argument(
        "--from-byte",
        metavar="N",
        type=natural,
        default=0,
        help="start in each .log with the batch that contains this byte (default: 0)",
    )
    add_json(dump, "one JSON object per line")
    dump.set_defaults(run="tailrace.cli.log.dump:run")


def _add_explain(verbs: Parsers) -> None:
    explain = described(
        verbs.add_parser("explain", help="show the steps of one read"),
        """
        Show the steps of one read as a broker does it: the last readable offset, the segment, each probe of the index,
        the scanned batches, the slice of the file, the aborted transactions, and the cost in reads and pages.
        """,
        """
        examples:
          tailrace log explain /var/lib/kafka --topic orders --partition 0 --offset 4711
          tailrace log explain /var/lib/kafka/orders-0 --at 2026-01-31T12:00:00Z
          tailrace log explain /var/lib/kafka/orders-0 --offset 4711 --isolation read_committed --json
        """,
    )
    _add_directory(explain)
    target = explain.add_mutually_exclusive_group(required=True)
    target.add_argument("--offset", metavar="N", type=natural, help="read from this offset")
    target.add_argument(
        "--at",
        "--timestamp",
        dest="timestamp",
        metavar="TIME",
        type=timestamp,
        help="look up the first record at or after this time, then read from it",
    )
    explain.add_argument(
        "--isolation",
        choices=("log_end", "read_uncommitted", "read_committed"),
        default="read_uncommitted",
        help="last readable offset: log end, high watermark or last stable offset (default: read_uncommitted, the "
        "high watermark)",
    )
    explain.add_argument(
        "--max-bytes",
        metavar="N",
        type=positive,
        default=1_048_576,
        help="maximum size of the fetch, in bytes (default: 1,048,576)",
    )
    add_json(explain, "one JSON document")
    explain.set_defaults(run="tailrace.cli.log.explain:run")


def _add_verify(verbs: Parsers) -> None:
    verify = described(
        verbs.add_parser("verify", help="check every batch, index and snapshot"),
        """
        Read and check every segment: checksums, order of offsets, records inside the batches (with --deep), indexes
        against the log, aborted transactions, producer snapshots, leader epochs, checkpoints, file names.

        Exit status: 0 no problems, 1 problems found, 2 the directory cannot be read.
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
        verbs.add_parser("repair", help="rebuild indexes, cut an incomplete last batch"),
        """
        Repair the problems that `log verify` finds. Indexes, producer snapshots and leader epochs are rebuilt from the
        log. An incomplete last batch is cut off and kept in a .broken file. Without --yes the repairs are only listed.
        No broker may use the directory.

        A damaged batch that is followed by intact batches is not changed unless --cut-damaged is given. With it, the
        log is cut before the damaged batch, and everything after the cut is kept in a .broken file.
        """,
        """
        examples:
          tailrace log repair /var/lib/kafka
          tailrace log repair /var/lib/kafka --yes
          tailrace log repair /var/lib/kafka --topic orders --partition 3 --cut-damaged --yes
        """,
    )
    _add_directory(repair)
    mode = repair.add_mutually_exclusive_group()
    mode.add_argument("--yes", action="store_true", help="carry out the repairs")
    mode.add_argument("--dry-run", action="store_true", help="only list the repairs (the default)")
    repair.add_argument("--cut-damaged", action="store_true", help="cut the log before a damaged batch")
    add_json(repair, "one JSON document")
    repair.set_defaults(run="tailrace.cli.log.repair:run")


def _add_directory(
    parser: argparse.ArgumentParser, metavar: str = "DIR", what: str = "data directory, or folder of one partition"
) -> None:
    parser.add_argument("directory", metavar=metavar, help=what)
    parser.add_argument("--topic", metavar="TOPIC", action="append", help="only this topic (may be repeated)")
    parser.add_argument(
        "--partition", metavar="N", type=natural, action="append", help="only this partition number (may be repeated)"
    )
