"""Options of `serve`, and of the commands that look at a running broker: `top` and `explain`."""

from __future__ import annotations

from tailrace.cli.options import (
    DEFAULT_METRICS,
    Parsers,
    add_cluster,
    add_isolation,
    add_json,
    described,
    natural,
    port,
    positive,
    seconds,
)


def add_serve(nouns: Parsers) -> None:
    serve = described(
        nouns.add_parser("serve", help="a broker: Produce, Fetch and the rest, for every Kafka client"),
        """
        Serve a data directory, a new one or one of Apache Kafka's (one node, broker and controller in one), until
        SIGTERM or SIGINT. A line on standard output says when clients can connect.

        Settings are Kafka's, from a server.properties and from -o, which wins. One that is not known, or has no effect,
        is warned about; one that asks for something we do not do is refused.
        """,
        """
        examples:
          tailrace serve --data ./data --port 9092
          tailrace serve --data ./data --port 9092 -o auto.create.topics.enable=false -o num.partitions=3
          tailrace serve --config server.properties
          tailrace serve --data ./data --metrics-port 9404 --log-level info --log-format json
          tailrace serve --data ./data -o listeners=INSIDE://127.0.0.1:9092,OUTSIDE://:9093 \\
              -o listener.security.protocol.map=INSIDE:PLAINTEXT,OUTSIDE:PLAINTEXT
        """,
    )
    serve.add_argument("--data", metavar="DIR", action="append", help="where data lies (may be repeated): log.dirs")
    serve.add_argument("--port", metavar="PORT", type=port, help="where to listen; 0 picks one (default: 9092)")
    serve.add_argument("--host", metavar="HOST", help="the interface, '' for all of them (default: 127.0.0.1)")
    serve.add_argument("--config", metavar="FILE", help="a server.properties")
    serve.add_argument(
        "-o", dest="override", metavar="KEY=VALUE", action="append", default=[], help="a setting (may be repeated)"
    )
    serve.add_argument(
        "--add-scram",
        metavar="@FILE",
        action="append",
        default=[],
        help="SCRAM credentials to store when formatting a new directory: a file, or - for standard input, with lines "
        "as `kafka-storage format` takes them: SCRAM-SHA-512=[name=alice,password=secret] (may be repeated)",
    )
    serve.add_argument(
        "--metrics-port",
        metavar="PORT",
        type=port,
        help="serve http://127.0.0.1:PORT/metrics for Prometheus and `tailrace top`; 0 picks one (default: not at all)",
    )
    serve.add_argument(
        "--log-level",
        choices=("debug", "info", "warning", "error"),
        default="warning",
        help="what is written to standard error: info tells of starts, stops and topics, debug of every request too "
        "(default: warning)",
    )
    serve.add_argument(
        "--log-format",
        choices=("text", "json"),
        default="text",
        help="lines for people, or one JSON object each (default: text)",
    )
    serve.set_defaults(run="tailrace.cli.serving.serve:run")


def add_top(nouns: Parsers) -> None:
    parser = described(
        nouns.add_parser("top", help="what a broker does right now: traffic, requests, latencies, topics"),
        """
        Show what happens, refreshed in place on a terminal, until Ctrl-C.

        With --metrics, of a Tailrace broker that was started with --metrics-port: throughput, requests and their times
        by API, topics by traffic, connections, memory. Without, of any Kafka cluster: how fast its topics grow, from
        their end offsets and their sizes on disk.

        P50 and P99 are of the time from a request being read to its answer being sent, so a Fetch that waits for
        records has its max.wait.ms in it; LOCAL is the broker's own work per request, WAIT what it waited for others.
        """,
        """
        examples:
          tailrace serve --data ./data --metrics-port 9404
          tailrace top --metrics 127.0.0.1:9404
          tailrace top --bootstrap kafka-1:9092 --interval 5
          tailrace top --metrics 127.0.0.1:9404 --once
          tailrace top --metrics 127.0.0.1:9404 --json | jq '.rates.bytes_in_per_s'
        """,
    )
    parser.add_argument("--metrics", metavar="URL", help="where the broker's metrics are: HOST:PORT will do")
    parser.add_argument(
        "--interval", metavar="SECONDS", type=seconds, default=2.0, help="between two pictures (default: 2)"
    )
    parser.add_argument("--count", metavar="N", type=positive, help="how many pictures (default: until interrupted)")
    parser.add_argument("--once", action="store_true", help="one picture, as plain text: the same as --count 1")
    add_cluster(parser)
    add_json(parser, "one JSON object per picture and line")
    parser.set_defaults(run="tailrace.cli.serving.top:run")


def add_explain(nouns: Parsers) -> None:
    explain = described(
        nouns.add_parser("explain", help="how a running broker comes to an answer: fetch"),
        "Let a running broker tell how it comes to an answer. `tailrace log explain` does so for a directory.",
    )
    verbs = explain.add_subparsers(title="what to explain", metavar="VERB", required=True)
    parser = described(
        verbs.add_parser("fetch", help="session, authorisation, waiting, budget, index probes, slice"),
        """
        Let a broker carry out a fetch as it would for a consumer, and tell each step: session, authorisation, how long
        it waited and what woke it, the budget, the bound of the isolation level, the segment, the probes of its index,
        the walk over batch headers, the slice that would be sent, and aborted transactions. No records are shown.

        The broker has to serve metrics: `tailrace serve --metrics-port 9404`. The exit status is 1 if the partition
        could not be read.
        """,
        """
        examples:
          tailrace explain fetch orders --offset 4711
          tailrace explain fetch orders --partition 2 --offset 4711 --isolation read_committed --max-bytes 65536
          tailrace explain fetch orders --offset 5000 --max-wait-ms 30000       waits at the end of the log
          tailrace explain fetch orders --offset 4711 --json | jq '.partitions[0].read.slice'
        """,
    )
    parser.add_argument("topic", metavar="TOPIC", help="the name")
    parser.add_argument("--partition", metavar="N", type=natural, default=0, help="which (default: 0)")
    parser.add_argument("--offset", metavar="N", type=natural, required=True, help="where to read from")
    parser.add_argument("--max-bytes", metavar="N", type=natural, help="for the whole answer (default: 52428800)")
    parser.add_argument("--min-bytes", metavar="N", type=natural, help="what to wait for (default: 1)")
    parser.add_argument("--max-wait-ms", metavar="N", type=natural, help="how long to wait, up to 60000 (default: 0)")
    add_isolation(parser)
    parser.add_argument(
        "--metrics",
        metavar="URL",
        default=DEFAULT_METRICS,
        help=f"where the broker serves metrics (default: {DEFAULT_METRICS})",
    )
    add_json(parser, "one JSON document")
    parser.set_defaults(run="tailrace.cli.serving.explain_fetch:run")
