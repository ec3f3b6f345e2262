"""`tailrace cluster status`: brokers, controllers, partitions and their followers, at a glance.

Exit status: 0 when all is well, 1 when something is not (a partition without a leader, under-replicated or under
min.insync.replicas; a log directory that failed; a controller or broker that cannot be reached), 2 when the cluster
cannot be asked at all. So a script can wait for a cluster: --wait does it by itself.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import time
from contextlib import nullcontext, suppress
from typing import Final

from tailrace.cli.cluster.cluster_status_view import show, state_json
from tailrace.cli.connecting import connected
from tailrace.cli.errors import CommandError
from tailrace.cli.output import json_document, json_line, say
from tailrace.cli.screen import own_screen, paint
from tailrace.client.cluster.cluster_state import ClusterState, read_cluster_state

_WAIT_POLL_S: Final = 0.5
ILL: Final = 1


def run(options: argparse.Namespace) -> int:
    if options.watch is not None:
        return _watch(options)
    state = _well_in_time(options) if options.wait is not None else _read(options)
    problems = state.problems(options.brokers)
    if options.json:
        say(json_document(state_json(state, problems, with_all=options.all)))
    else:
        say(*show(state, problems, with_all=options.all))
    return ILL if problems else 0


def _read(options: argparse.Namespace) -> ClusterState:
    try:
        with connected(options) as cluster:
            return read_cluster_state(cluster)
    except CommandError as error:
        raise CommandError(str(error)) from error  # whoever may not look has seen nothing ill


def _well_in_time(options: argparse.Namespace) -> ClusterState:
    """The state once all is well, or the last one when time is over; what cannot be asked yet may come too."""
    deadline = time.monotonic() + options.wait
    while True:
        try:
            state = _read(options)
            if not state.problems(options.brokers) or time.monotonic() > deadline:
                return state
        except CommandError:
            if time.monotonic() > deadline:
                raise
        time.sleep(_WAIT_POLL_S)


def _watch(options: argparse.Namespace) -> int:
    """A picture every so often, until Ctrl-C; whether the last one was well."""
    is_live = sys.stdout.isatty() and not options.json
    status = 0
    with own_screen() if is_live else nullcontext(), suppress(KeyboardInterrupt):
        while True:
            moment = time.time()
            try:
                state = _read(options)
                problems = state.problems(options.brokers)
                status = ILL if problems else 0
                lines = show(state, problems, with_all=options.all)
                told = state_json(state, problems, with_all=options.all)
            except CommandError as error:
                status, lines, told = error.status, [f"tailrace: {error}"], {"healthy": False, "problems": [str(error)]}
            if options.json:
                say(json_line({"time": int(moment * 1000), **told}))
            elif is_live:
                paint([time.strftime("%H:%M:%S"), *lines][: shutil.get_terminal_size().lines])
            else:
                say(time.strftime("%H:%M:%S"), *lines, "")
            sys.stdout.flush()
            time.sleep(options.watch)
    return status
