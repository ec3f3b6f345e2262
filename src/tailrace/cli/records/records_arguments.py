"""Options of `produce` and `consume`."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from tailrace.cli.parsing.options import (
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

if TYPE_CHECKING:
    from tailrace.cli.records.record_format import RecordFormat


def _add_topic(parser: argparse.ArgumentParser, what: str) -> None:
    either = parser.add_mutually_exclusive_group(required=True)
    either.add_argument("topic", metavar="TOPIC", nargs="?", help=what)
    either.add_argument("-t", "--topic", dest="topic_option", metavar="TOPIC", help="same as TOPIC, for users of kcat")


def group_name(text: str) -> str:
    if not text.strip():
        raise argparse.ArgumentTypeError("the name of a group is empty")
    return text


def record_format(text: str) -> RecordFormat:
    """Compile a format. The module is imported when the option is used, so that `--help` is quick."""
    from tailrace.cli.records import record_format as formats

    return formats.record_format(text)


def add_produce(commands: Parsers) -> None:
    parser = described(
        commands.add_parser("produce", help="write lines to a topic"),
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
          echo hello | tailrace produce -b kafka-1:9092 -t orders -p 0 -k customer-7 -H trace=1
          echo '{"key": "k1", "value": {"total": 17}, "headers": {"trace": "1"}}' | tailrace produce orders --json
          tailrace consume orders --json | tailrace produce copy --json --repartition
        """,
    )
    _add_topic(parser, "topic to write to")
    parser.add_argument("--file", metavar="PATH", help="file to read lines from (default: standard input)")
    keys = parser.add_mutually_exclusive_group()
    keys.add_argument(
        "-K",
        "--key-separator",
        metavar="TEXT",
        help="text between key and value in a line; \\t is a tab (default: no keys)",
    )
    keys.add_argument("-k", "--key", metavar="TEXT", help="key of every record")
    parser.add_argument(
        "--headers", action="store_true", help="each line starts with its headers: name:text,name:text and a tab"
    )
    parser.add_argument(
        "-H",
        "--header",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        help="header of every record (may be repeated)",
    )
    parser.add_argument("--null", metavar="TEXT", help="text that stands for a null key, value or header")
    parser.add_argument("-p", "--partition", metavar="N", type=natural, help="write all records to this partition")
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
    add_json(parser, "read lines as JSON objects, and print the report as JSON", "-J")
    parser.set_defaults(run="tailrace.cli.records.produce:run")


def _add_sending_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-z",
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


def add_consume(commands: Parsers) -> None:
    parser = described(
        commands.add_parser("consume", help="print the records of a topic"),
        """
        Print the records of a topic, one per line: partition, offset, time (UTC), key, value and headers. The command
        reads one partition after the other, up to the end offsets at the time the command starts. With --follow
        it keeps printing new records until Ctrl-C or --max.

        Without --group, all partitions are read and nothing is committed. With --group, the command is a member of that
        consumer group: it reads the partitions that the group assigns, from their committed offsets, and commits what
        it has printed. --from then applies to partitions without a committed offset.

        START is `beginning` (the default), `latest` (the default with --follow), an offset, -N for the last N offsets
        of each partition, or a time: @milliseconds since 1970, or ISO 8601 (UTC if it has no time zone).

        EXPRESSION is a condition in Python's syntax on key, value (decoded JSON, or text), text (the value as it is),
        headers, offset, timestamp and partition, with and, or, not, in, comparisons, arithmetic, len(), int(), float(),
        str(), matches(TEXT, REGEX) and the methods startswith, endswith, lower, upper and strip.

        FORMAT has the tokens of kcat: %t topic, %p partition, %o offset, %T timestamp, %k key, %K size of the key,
        %s value, %S size of the value (-1: null), %h headers, and \\n \\r \\t \\xHH.
        """,
        """
        examples:
          tailrace consume orders --max 10
          tailrace consume orders --partition 0 --from 4711 --json
          tailrace consume orders --from -5
          tailrace consume orders --from 2026-01-31T12:00:00Z --key customer-7 --isolation read_committed
          tailrace consume orders --where 'value.price > 50 and "Oslo" in value.city'
          tailrace consume orders --partition 0 --key customer-7 --json --progress
          tailrace consume orders --max 100000 --parquet orders.parquet
          tailrace consume orders --follow --json | jq -r .value
          tailrace consume orders --group billing --follow
          tailrace consume -b kafka-1:9092 -t orders -p 0 -o -5 -c 5 -f '%t-%p %o %k: %s\\n'
        """,
    )
    _add_reading_options(parser)
    add_isolation(parser)
    parser.add_argument(
        "--encoding",
        choices=ENCODINGS,
        default="utf8",
        help="encoding of printed keys, values and header values; bytes that are not UTF-8 are printed as base64 and "
        "marked so (default: utf8)",
    )
    _add_filters(parser)
    add_cluster(parser)
    _add_output_formats(parser)
    parser.set_defaults(run="tailrace.cli.records.consume:run")


def _add_filters(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--key", metavar="TEXT", help="only records with exactly this key")
    parser.add_argument("--grep", metavar="REGEX", help="only records whose key or value, as text, contains a match")
    parser.add_argument("--header", metavar="NAME[=VALUE]", help="only records with this header")
    parser.add_argument(
        "--where",
        metavar="EXPRESSION",
        help="only records for which this is true, for example `value.price > 50 and key == 'a'`, see above",
    )
    parser.add_argument(
        "--schema-registry",
        metavar="URL",
        help="decode keys and values that were written with this schema registry (Avro, Protobuf, JSON): --json prints "
        "them as keyDecoded and valueDecoded, --where can use their fields",
    )


def _add_output_formats(parser: argparse.ArgumentParser) -> None:
    output = parser.add_mutually_exclusive_group()
    add_json(output, "one JSON object per line: topic, partition, offset, timestamp, key, value, headers", "-J")
    output.add_argument(
        "-f", "--format", metavar="FORMAT", type=record_format, help="print records in this format, see above"
    )
    output.add_argument("-K", "--key-separator", metavar="TEXT", help="print key, TEXT and value; \\t is a tab")
    output.add_argument("--values", action="store_true", help="print only the values, unchanged, one per line")
    output.add_argument("--parquet", metavar="FILE", help="write the records to a Parquet file; -: standard output")
    parser.add_argument(
        "--more",
        action="store_true",
        help="more fields in JSON: timestampType, leaderEpoch, producerId, producerEpoch, sequence",
    )
    parser.add_argument(
        "--progress",
        action="store_true",
        help='with --json, also print how far the search is, twice a second: {"progress": {…}}',
    )


def _add_reading_options(parser: argparse.ArgumentParser) -> None:
    _add_topic(parser, "topic to read")
    parser.add_argument(
        "-o", "--from", dest="start", metavar="START", type=start_place, help="start of the read, see above"
    )
    add_partition(parser, "-p")
    parser.add_argument("-G", "--group", metavar="NAME", type=group_name, help="read as a member of this group")
    parser.add_argument(
        "-c", "--max", metavar="N", type=positive, help="maximum number of records to print (default: all)"
    )
    ending = parser.add_mutually_exclusive_group()
    ending.add_argument("--follow", action="store_true", help="wait for new records and print them")
    ending.add_argument("-e", dest="until_end", action="store_true", help="stop at the end of the topic (the default)")
