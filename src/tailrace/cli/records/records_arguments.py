"""Options of `produce` and `consume`."""

from __future__ import annotations

import argparse

from tailrace.cli.options import (
    ENCODINGS,
    Parsers,
    add_cluster,
    add_isolation,
    add_json,
    add_partition,
    described,
    natural,
    positive,
)
from tailrace.cli.records.start_place import start_place


def add_produce(nouns: Parsers) -> None:
    parser = described(
        nouns.add_parser("produce", help="write lines to a topic"),
        """
        Write each line of standard input, or of a file, as one record. Records with a key go to the partition that
        Kafka's clients choose for the key. Each batch of records without a key goes to a random partition. On a
        terminal, each line is sent at once.

        With --json a line is a JSON object as `tailrace consume --json` prints it, with the fields key, value, headers,
        timestamp and partition. Only value is required; null writes a tombstone. A value that is not a string is
        written as JSON. keyEncoding and valueEncoding can be base64 or hex. The report is then JSON as well.
        """,
        """
        examples:
          echo hello | tailrace produce orders
          tailrace produce orders --key-separator : --file lines.txt --compression zstd
          printf 'trace:1,user:me\\tkey=value\\n' | tailrace produce orders --headers --key-separator =
          echo '{"key": "k1", "value": {"total": 17}, "headers": {"trace": "1"}}' | tailrace produce orders --json
          tailrace consume orders --json | tailrace produce copy --json --repartition
        """,
    )
    parser.add_argument("topic", metavar="TOPIC", help="topic to write to")
    parser.add_argument("--file", metavar="PATH", help="file to read lines from (default: standard input)")
    parser.add_argument(
        "--key-separator", metavar="TEXT", help="text between key and value in a line; \\t is a tab (default: no keys)"
    )
    parser.add_argument(
        "--headers", action="store_true", help="each line starts with its headers: name:text,name:text and a tab"
    )
    parser.add_argument(
        "--header", metavar="NAME=VALUE", action="append", default=[], help="header of every record (may be repeated)"
    )
    parser.add_argument("--null", metavar="TEXT", help="text that stands for a null key, value or header")
    parser.add_argument("--partition", metavar="N", type=natural, help="write all records to this partition")
    parser.add_argument(
        "--repartition", action="store_true", help="ignore the field partition of JSON lines; choose by the key"
    )
    parser.add_argument(
        "--encoding",
        choices=ENCODINGS,
        default="utf8",
        help="encoding of keys and values in JSON lines without keyEncoding or valueEncoding (default: utf8)",
    )
    _add_sending_options(parser)
    add_cluster(parser)
    add_json(parser, "read lines as JSON objects, and print the report as JSON")
    parser.set_defaults(run="tailrace.cli.records.produce:run")


def _add_sending_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--compression",
        choices=("none", "gzip", "snappy", "lz4", "zstd"),
        default="none",
        help="compression of record batches (default: none)",
    )
    parser.add_argument(
        "--acks",
        choices=("all", "1", "0"),
        default="all",
        help="acknowledgements to wait for: all in-sync replicas (idempotent), the leader only, or none (default: all)",
    )
    parser.add_argument(
        "--batch-bytes",
        metavar="N",
        type=positive,
        default=65_536,
        help="size of a full batch before compression, in bytes (default: 65,536)",
    )
    parser.add_argument("--quiet", action="store_true", help="do not print a report at the end")


def add_consume(nouns: Parsers) -> None:
    parser = described(
        nouns.add_parser("consume", help="print the records of a topic"),
        """
        Print the records of a topic, one per line: partition, offset, time (UTC), key, value and headers. The command
        reads one partition after the other, up to the end offsets at its start. With --follow it keeps printing new
        records until Ctrl-C or --max. It uses no consumer group and commits no offsets.

        WHERE is `beginning` (the default), `latest` (the default with --follow), an offset, -N for the last N offsets
        of each partition, or a time: @milliseconds since 1970, or ISO 8601 (UTC if it has no time zone).
        """,
        """
        examples:
          tailrace consume orders --max 10
          tailrace consume orders --partition 0 --from 4711 --json
          tailrace consume orders --from -5
          tailrace consume orders --from 2026-01-31T12:00:00Z --key customer-7 --isolation read_committed
          tailrace consume orders --follow --json | jq -r .value
        """,
    )
    parser.add_argument("topic", metavar="TOPIC", help="topic to read")
    parser.add_argument("--from", dest="start", metavar="WHERE", type=start_place, help="start of the read, see above")
    add_partition(parser)
    parser.add_argument("--max", metavar="N", type=positive, help="maximum number of records to print (default: all)")
    parser.add_argument("--follow", action="store_true", help="wait for new records and print them")
    add_isolation(parser)
    parser.add_argument(
        "--encoding",
        choices=ENCODINGS,
        default="utf8",
        help="encoding of printed keys, values and header values; bytes that are not UTF-8 are printed as base64 and "
        "marked so (default: utf8)",
    )
    parser.add_argument("--key", metavar="TEXT", help="only records with exactly this key")
    parser.add_argument("--grep", metavar="REGEX", help="only records whose key or value, as text, contains a match")
    parser.add_argument("--header", metavar="NAME[=VALUE]", help="only records with this header")
    add_cluster(parser)
    form = parser.add_mutually_exclusive_group()
    add_json(form, "one JSON object per line: topic, partition, offset, timestamp, key, value, headers")
    form.add_argument("--values", action="store_true", help="print only the values, unchanged, one per line")
    parser.add_argument(
        "--more",
        action="store_true",
        help="more fields in JSON: timestampType, leaderEpoch, producerId, producerEpoch, sequence",
    )
    parser.set_defaults(run="tailrace.cli.records.consume:run")
