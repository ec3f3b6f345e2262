"""`tailrace top`: what a broker does right now, refreshed in place.

With --metrics it reads a Tailrace broker's /metrics; without, it asks any Kafka cluster for offsets and sizes. Rates
are between two readings, so the first picture comes after one interval. Ctrl-C is how it ends.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from typing import Final

from tailrace.cli.cluster import connected
from tailrace.cli.errors import CommandError
from tailrace.cli.http_get import get
from tailrace.cli.output import json_line, say
from tailrace.cli.top_reading import Reading, read_cluster, read_metrics
from tailrace.cli.top_view import compare, show
from tailrace.metrics.scrape import MalformedMetrics, Scrape

_HOME: Final = "\x1b[H"
_CLEAR_LINE: Final = "\x1b[K"
_CLEAR_BELOW: Final = "\x1b[J"
_OTHER_SCREEN: Final = "\x1b[?1049h\x1b[?25l"
_FIRST_SCREEN: Final = "\x1b[?25h\x1b[?1049l"


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
    with _own_screen() if is_live else nullcontext(), suppress(KeyboardInterrupt):
        while pictures is None or shown < pictures:
            time.sleep(options.interval)
            now = read()
            view = compare(before, now)
            clock = time.strftime("%H:%M:%S")
            if options.json:
                say(json_line({"time": int(now.time_s * 1_000), **view}))
            elif is_live:
                _paint(show(view, clock, height=shutil.get_terminal_size().lines))
            else:
                say(*([""] if shown else []), *show(view, clock))
            sys.stdout.flush()
            before = now
            shown += 1
    return 0


def _paint(lines: list[str]) -> None:
    """Over what is there, without clearing it first: so it does not flicker."""
    width = shutil.get_terminal_size().columns
    say(_HOME + f"{_CLEAR_LINE}\n".join(line[:width] for line in lines) + _CLEAR_LINE + _CLEAR_BELOW)


@contextmanager
def _own_screen() -> Iterator[None]:
    """As a pager does: what was on the terminal before is there again afterwards."""
    sys.stdout.write(_OTHER_SCREEN)
    try:
        yield
    finally:
        sys.stdout.write(_FIRST_SCREEN)
        sys.stdout.flush()


def _read_url(url: str) -> Reading:
    page = get(url, "/metrics")
    if page.status != 200:
        raise CommandError(f"no metrics from {url}: {page.status} {page.reason}")
    try:
        return read_metrics(Scrape(page.text), url, time.time())
    except MalformedMetrics as error:
        raise CommandError(f"no metrics from {url}: {error}") from error
