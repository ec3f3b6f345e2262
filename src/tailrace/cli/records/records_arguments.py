"""The words of `produce` and `consume`."""

from __future__ import annotations

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
        Write each line of standard input, or of a file, as one record. Records with a key go where Kafka's own clients
        put that key; those without go to one partition or another, batch by batch. What is typed is sent line by line.

        With --json a line is an object as `tailrace consume --json` prints it: key, value, headers, timestamp,
        partition; keyEncoding and valueEncoding may be base64 or hex. Only value has to be there, and null makes a
        tombstone; a value that is no string is written as JSON. The report is JSON then, too.
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
    parser.add_argument("topic", metavar="TOPIC", help="where to")
    parser.add_argument("--file", metavar="PATH", help="read lines from here instead of standard input")
    parser.add_argument("--key-separator", metavar="TEXT", help="a line is a key, this, and a value (\\t for a tab)")
    parser.add_argument("--headers", action="store_true", help="a line begins with name:text,name:text and a tab")
    parser.add_argument(
        "--header", metavar="NAME=VALUE", action="append", default=[], help="a header of every record (may be repeated)"
    )
    parser.add_argument("--null", metavar="TEXT", help="a key, value or header that is this stands for null")
    parser.add_argument("--partition", metavar="N", type=natural, help="all records to this partition")
    parser.add_argument("--repartition", action="store_true", help="do not go by the partition in JSON lines")
    parser.add_argument(
        "--encoding", choices=ENCODINGS, default="utf8", help="of text in JSON lines that does not say (default: utf8)"
    )
    parser.add_argument(
        "--compression", choices=("none", "gzip", "snappy", "lz4", "zstd"), default="none", help="(default: none)"
    )
    parser.add_argument(
        "--acks",
        choices=("all", "1", "0"),
        default="all",
        help="who has to have a batch before the next: all in sync, and each batch exactly once; the leader; nobody "
        "(default: all)",
    )
    parser.add_argument(
        "--batch-bytes",
        metavar="N",
        type=positive,
        default=65_536,
        help="a batch is full at this size (default: 64 KB)",
    )
    parser.add_argument("--quiet", action="store_true", help="no report at the end")
    add_cluster(parser)
    add_json(parser, "lines are JSON objects, and so is the report")
    parser.set_defaults(run="tailrace.cli.records.produce:run")


def add_consume(nouns: Parsers) -> None:
    parser = described(
        nouns.add_parser("consume", help="the records of a topic"),
        """
        Print records, one a line: partition, offset, time (UTC), key, value and headers. It ends where the topic ended
        when it began, partition by partition; with --follow it goes on as records come, until Ctrl-C or --max.

        WHERE is `beginning` (the default), `latest` (the default with --follow), an offset, -N for the last N offsets
        of each partition, or a time: @milliseconds since 1970, or ISO 8601, in UTC if it names no zone.

        No consumer group is involved, and nothing is committed.
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
    parser.add_argument("topic", metavar="TOPIC", help="what to read")
    parser.add_argument("--from", dest="start", metavar="WHERE", type=start_place, help="where to start")
    add_partition(parser)
    parser.add_argument("--max", metavar="N", type=positive, help="at most so many records")
    parser.add_argument("--follow", action="store_true", help="go on as records come")
    add_isolation(parser)
    parser.add_argument(
        "--encoding",
        choices=ENCODINGS,
        default="utf8",
        help="of keys, values and header values; what is not UTF-8 is shown in base64, and says so (default: utf8)",
    )
    parser.add_argument("--key", metavar="TEXT", help="only records with exactly this key")
    parser.add_argument("--grep", metavar="REGEX", help="only records whose key or value matches, as text")
    parser.add_argument("--header", metavar="NAME[=VALUE]", help="only records with this header")
    add_cluster(parser)
    shape = parser.add_mutually_exclusive_group()
    add_json(shape, "one object a line: topic, partition, offset, timestamp, key, value, headers")
    shape.add_argument("--values", action="store_true", help="only the values, as they are, one a line")
    parser.add_argument(
        "--more",
        action="store_true",
        help="in JSON also timestampType, leaderEpoch, producerId, producerEpoch, sequence",
    )
    parser.set_defaults(run="tailrace.cli.records.consume:run")
