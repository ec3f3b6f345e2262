"""`tailrace top`: show the current activity of a broker or cluster, refreshed in place.

With --metrics the command reads /metrics of a Tailrace broker; without, it queries offsets and sizes of any Kafka
cluster. Rates are computed from two readings, so the first output appears after one interval. Ctrl-C ends the command.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from contextlib import nullcontext

from tailrace.cli.connection.connecting import bootstrap_text, connected
from tailrace.cli.errors import CommandError
from tailrace.cli.output import json_line, print_lines
from tailrace.cli.serving.http_get import get, page_errors
from tailrace.cli.serving.top_reading import Reading, read_cluster, read_metrics
from tailrace.cli.serving.top_view import compare, show
from tailrace.cli.terminal.columns import can_repaint, terminal_size
from tailrace.cli.terminal.screen import own_screen, paint
from tailrace.metrics.scrape import MalformedMetrics, Scrape


def run(options: argparse.Namespace) -> int:
    if options.metrics is not None:
        return _watch(options, lambda: _read_url(options.metrics))
    with connected(options) as cluster:
        return _watch(options, lambda: read_cluster(cluster, bootstrap_text(cluster), time.time()))


def _watch(options: argparse.Namespace, read: Callable[[], Reading]) -> int:
    is_live = can_repaint(sys.stdout) and not options.once and not options.json
    count = 1 if options.once else options.count
    before = read()
    shown = 0
    with own_screen() if is_live else nullcontext():
        while count is None or shown < count:
            time.sleep(options.interval)
            now = read()
            view = compare(before, now)
            clock = time.strftime("%H:%M:%S")
            if options.json:
                print_lines(json_line({"time": int(now.time_s * 1_000), **view}))
            elif is_live:
                paint(show(view, clock, height=terminal_size(sys.stdout).lines))
            else:
                print_lines(*([""] if shown else []), *show(view, clock))
            sys.stdout.flush()
            before = now
            shown += 1
    return 0


def _read_url(url: str) -> Reading:
    page = get(url, "/metrics")
    if page.status != 200:
        raise CommandError(f"{url} has no metrics: HTTP status {page.status_text}")
    with page_errors(url, "/metrics"):
        try:
            return read_metrics(Scrape(page.text), url, time.time())
        except MalformedMetrics as error:
            raise CommandError(f"{url} has no readable metrics: {error}") from error
