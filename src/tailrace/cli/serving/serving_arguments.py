"""Options of `serve` and `shards`, and of the commands that inspect a running broker: `top` and `explain`."""

from __future__ import annotations

import argparse

from tailrace.cli.cluster.reassign_arguments import add_moving
from tailrace.cli.console.console_arguments import add_console_options
from tailrace.cli.parsing.options import (
    DEFAULT_METRICS,
    Parsers,
    add_cluster,
    add_isolation,
    add_json,
    cluster_id,
    described,
    natural,
    port,
    positive,
    seconds,
)


def add_serve(commands: Parsers) -> None:
    serve = described(
        commands.add_parser("serve", help="start a broker for Kafka clients"),
        """
        Start a broker until SIGTERM or SIGINT. Its data directory can be new, or come from Tailrace or an Apache Kafka
        node (broker and controller in one). When clients can connect, the addresses are printed to standard output.

        Settings have Kafka's names. They are read from a server.properties and overridden by -o. Unknown settings and
        settings without effect log a warning. Settings for unsupported features stop the start.
        """,
        """
        examples:
          tailrace serve --data ./data --port 9092
          tailrace serve --data ./data --port 9092 -o auto.create.topics.enable=false -o num.partitions=3
          tailrace serve --config server.properties
          tailrace serve --data ./data --console
          tailrace serve --data ./data --metrics-port 9404 --log-level info --log-format json
          tailrace serve --data ./data -o listeners=INSIDE://127.0.0.1:9092,OUTSIDE://:9093 \\
              -o listener.security.protocol.map=INSIDE:PLAINTEXT,OUTSIDE:PLAINTEXT
        """,
    )
    serve.add_argument("--data", metavar="DIR", action="append", help="data directory (log.dirs; may be repeated)")
    serve.add_argument("--port", metavar="PORT", type=port, help="port to listen on; 0: a free one (default: 9092)")
    serve.add_argument("--host", metavar="HOST", help="address to listen on; '': all (default: 127.0.0.1)")
    serve.add_argument("--config", metavar="FILE", help="a server.properties file")
    serve.add_argument(
        "-o",
        dest="override",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        help="a broker setting (may be repeated)",
    )
    serve.add_argument(
        "--shards",
        metavar="N",
        type=_shards,
        help="number of broker processes, to use more than one core: each has a port (PORT, PORT+1, …) and a folder in "
        "the data directory; auto: one per core (default: 1)",
    )
    _add_new_directory(serve)
    add_console_options(serve)
    _add_output(serve)
    serve.set_defaults(run="tailrace.cli.serving.serve:run")


def _shards(text: str) -> int | str:
    return text if text == "auto" else positive(text)


def _add_new_directory(serve: argparse.ArgumentParser) -> None:
    """Add the options that have an effect when a new directory is formatted."""
    serve.add_argument(
        "--add-scram",
        metavar="@FILE",
        action="append",
        default=[],
        help="SCRAM credentials to store when formatting a new directory: a file, or - for standard input, with lines "
        "as `kafka-storage format` takes them: SCRAM-SHA-512=[name=alice,password=secret] (may be repeated)",
    )
    serve.add_argument(
        "--cluster-id",
        metavar="ID",
        type=cluster_id,
        help="cluster id to store when formatting a new directory, as `kafka-storage random-uuid` prints it "
        "(default: a random one)",
    )


def _add_output(serve: argparse.ArgumentParser) -> None:
    serve.add_argument(
        "--ready-line", metavar="TEXT", help="one more line to print when clients can connect, for programs that wait"
    )
    serve.add_argument(
        "--metrics-port",
        metavar="PORT",
        type=port,
        help="serve http://127.0.0.1:PORT/metrics for Prometheus and `tailrace top`; 0: a free port (default: off)",
    )
    serve.add_argument(
        "--log-level",
        choices=("debug", "info", "warning", "error"),
        default="warning",
        help="lowest level to log to standard error: info adds starts, stops and topics, debug adds every request "
        "(default: warning)",
    )
    serve.add_argument(
        "--log-format",
        choices=("text", "json"),
        default="text",
        help="format of log lines: text for people, or one JSON object per line (default: text)",
    )


def add_top(commands: Parsers) -> None:
    parser = described(
        commands.add_parser("top", help="show current traffic, requests, latencies and topics"),
        """
        Show the current activity of a broker or cluster, refreshed in place on a terminal, until Ctrl-C.

        With --metrics: throughput, requests and latencies by API, topics by traffic, connections and memory of one
        Tailrace broker that was started with --metrics-port. Without --metrics: the growth of the topics of any Kafka
        cluster, from their end offsets and sizes on disk.

        P50 and P99 are percentiles of the time between reading a request and sending its response. A Fetch that waits
        for records includes that wait. LOCAL is the broker's own processing time per request, WAIT the time it waited,
        for example for other replicas.
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
    parser.add_argument(
        "--metrics", metavar="URL", help="address of the broker's metrics, HOST:PORT or http://HOST:PORT"
    )
    parser.add_argument(
        "--interval", metavar="SECONDS", type=seconds, default=2.0, help="time between two refreshes (default: 2)"
    )
    parser.add_argument("--count", metavar="N", type=positive, help="number of refreshes (default: until interrupted)")
    parser.add_argument("--once", action="store_true", help="print once as plain text, like --count 1")
    add_cluster(parser)
    add_json(parser, "one JSON object per line and refresh")
    parser.set_defaults(run="tailrace.cli.serving.top:run")


def add_explain(commands: Parsers) -> None:
    explain = described(
        commands.add_parser("explain", help="show how a running broker handles a fetch"),
        "Show how a running broker handles a request. For a data directory, use `tailrace log explain`.",
        """
        examples:
          tailrace explain fetch orders --offset 4711
          tailrace explain waiting
        """,
    )
    verbs = explain.add_subparsers(title="verbs", metavar="VERB", required=True)
    _add_explain_fetch(verbs)
    _add_explain_waiting(verbs)


def _add_explain_waiting(verbs: Parsers) -> None:
    parser = described(
        verbs.add_parser("waiting", help="list the requests that wait, and the fetch sessions"),
        """
        List the requests that wait in a running broker: fetches for records, produces for replicas, and others.
        WOKEN BY names the partitions whose change would wake a request before its deadline. Below are the fetch
        sessions, those that were used last first. At most 500 of each are listed.

        The broker must serve metrics: `tailrace serve --metrics-port 9404`.
        """,
        """
        examples:
          tailrace explain waiting
          tailrace explain waiting --json | jq '.operations[] | select(.kind == "DelayedProduce")'
        """,
    )
    _add_metrics(parser)
    add_json(parser, "one JSON document")
    parser.set_defaults(run="tailrace.cli.serving.explain_waiting:run")


def _add_explain_fetch(verbs: Parsers) -> None:
    parser = described(
        verbs.add_parser("fetch", help="show session, authorization, waiting, budget, index probes and slice"),
        """
        Let a running broker carry out a fetch as for a consumer, and show each step: session, authorization, the wait
        and its end, the byte budget, the last readable offset, the segment, the index probes, the scan of batch
        headers, the slice to send, and aborted transactions. No records are shown.

        The broker must serve metrics: `tailrace serve --metrics-port 9404`. The exit status is 1 if the partition could
        not be read.
        """,
        """
        examples:
          tailrace explain fetch orders --offset 4711
          tailrace explain fetch orders --partition 2 --offset 4711 --isolation read_committed --max-bytes 65536
          tailrace explain fetch orders --offset 5000 --max-wait-ms 30000       waits at the end of the log
          tailrace explain fetch orders --offset 4711 --json | jq '.partitions[0].read.slice'
        """,
    )
    parser.add_argument("topic", metavar="TOPIC", help="name of the topic")
    parser.add_argument("--partition", metavar="N", type=natural, default=0, help="partition to read (default: 0)")
    parser.add_argument("--offset", metavar="N", type=natural, required=True, help="first offset to read")
    parser.add_argument(
        "--max-bytes", metavar="N", type=natural, help="maximum size of the response, in bytes (default: 52428800)"
    )
    parser.add_argument(
        "--min-bytes", metavar="N", type=natural, help="number of bytes to wait for, up to --max-wait-ms (default: 1)"
    )
    parser.add_argument(
        "--max-wait-ms", metavar="N", type=natural, help="maximum wait in milliseconds, up to 60000 (default: 0)"
    )
    add_isolation(parser)
    _add_metrics(parser)
    add_json(parser, "one JSON document")
    parser.set_defaults(run="tailrace.cli.serving.explain_fetch:run")


def _add_metrics(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--metrics",
        metavar="URL",
        default=DEFAULT_METRICS,
        help=f"address of the broker's metrics, HOST:PORT (default: {DEFAULT_METRICS})",
    )


def add_shards(commands: Parsers) -> None:
    shards = described(
        commands.add_parser("shards", help="spread partitions over the shards of a node"),
        "Manage the shards of a node that was started with `tailrace serve --shards N`.",
        """
        examples:
          tailrace shards rebalance --dry-run
          tailrace shards rebalance --wait 3600
        """,
    )
    verbs = shards.add_subparsers(title="verbs", metavar="VERB", required=True)
    parser = described(
        verbs.add_parser("rebalance", help="move partitions so that each shard has about the same number"),
        """
        Move partitions so that each shard has about the same number of each topic. New topics are spread by themselves;
        this command is for the topics that were there before the number of shards has grown.

        Internal topics move too. Records are copied from one folder to another while clients use them.
        `tailrace reassign status` shows running moves, and `tailrace reassign cancel` cancels them.
        """,
        """
        examples:
          tailrace shards rebalance --dry-run
          tailrace shards rebalance --topic orders --throttle 50000000
          tailrace shards rebalance --wait 3600
        """,
    )
    parser.add_argument(
        "--topic", metavar="TOPIC", action="append", default=[], help="topic to spread (default: all; may be repeated)"
    )
    add_moving(parser)
    add_cluster(parser)
    add_json(parser, "one JSON document")
    parser.set_defaults(run="tailrace.cli.serving.rebalance_shards:run")
