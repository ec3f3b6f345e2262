"""`tailrace top`: what a broker does right now, refreshed in place.

With --metrics it reads a Tailrace broker's /metrics; without, it asks any Kafka cluster for offsets and sizes. Rates
are between two readings, so the first picture comes after one interval. Ctrl-C is how it ends.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import time
from collections.abc import Callable
from contextlib import nullcontext, suppress

from tailrace.cli.connecting import connected
from tailrace.cli.errors import CommandError
from tailrace.cli.output import json_line, say
from tailrace.cli.screen import own_screen, paint
from tailrace.cli.serving.http_get import get
from tailrace.cli.serving.top_reading import Reading, read_cluster, read_metrics
from tailrace.cli.serving.top_view import compare, show
from tailrace.metrics.scrape import MalformedMetrics, Scrape


def run(options: argparse.Namespace) -> int:
    if options.metrics is not None:
        return _watch(options, lambda: _read_url(options.metrics))
    with connected(options) as cluster:
        return _watch(options, lambda: read_cluster(cluster, options.bootstrap, time.time()))


def _watch(options: argparse.Namespace, read: Callable[[], Reading]) -> int:
    is_live = sys.stdout.isatty() and not options.once and not options.json
    pictures = 1 if options.once else options.count
    before = read()
    shown = 0
    with own_screen() if is_live else nullcontext(), suppress(KeyboardInterrupt):
        while pictures is None or shown < pictures:
            time.sleep(options.interval)
            now = read()
            view = compare(before, now)
            clock = time.strftime("%H:%M:%S")
            if options.json:
                say(json_line({"time": int(now.time_s * 1_000), **view}))
            elif is_live:
                paint(show(view, clock, height=shutil.get_terminal_size().lines))
            else:
                say(*([""] if shown else []), *show(view, clock))
            sys.stdout.flush()
            before = now
            shown += 1
    return 0


def _read_url(url: str) -> Reading:
    page = get(url, "/metrics")
    if page.status != 200:
        raise CommandError(f"no metrics from {url}: {page.status} {page.reason}")
    try:
        return read_metrics(Scrape(page.text), url, time.time())
    except MalformedMetrics as error:
        raise CommandError(f"no metrics from {url}: {error}") from error
