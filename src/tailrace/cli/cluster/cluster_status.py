"""`tailrace cluster status`: brokers, controllers, partitions and the lag of followers.

Exit status:
  0  healthy
  1  unhealthy: a partition is offline, under-replicated or under min.insync.replicas, a log directory has failed, or
     a controller or broker cannot be reached
  2  no broker can be reached

With --wait the command returns when the cluster is healthy, or when the time is over.
"""

from __future__ import annotations

import argparse
import sys
import time
from contextlib import nullcontext
from typing import Final, NoReturn

from tailrace.cli.cluster.cluster_status_view import show, state_json
from tailrace.cli.connection.connecting import connected
from tailrace.cli.errors import CommandError
from tailrace.cli.output import json_document, json_line, print_lines
from tailrace.cli.terminal.columns import can_repaint
from tailrace.cli.terminal.screen import own_screen, paint
from tailrace.client.cluster.cluster_state import ClusterState, read_cluster_state

_WAIT_POLL_S: Final = 0.5
UNHEALTHY: Final = 1


def run(options: argparse.Namespace) -> int:
    if options.watch is not None:
        _watch(options)
    state = _wait_until_healthy(options) if options.wait is not None else _read(options)
    problems = state.problems(options.brokers)
    if options.json:
        print_lines(json_document(state_json(state, problems, with_all=_with_all(options))))
    else:
        print_lines(*show(state, problems, with_all=_with_all(options)))
    return UNHEALTHY if problems else 0


def _with_all(options: argparse.Namespace) -> bool:
    return bool(options.all or options.topic)


def _read(options: argparse.Namespace) -> ClusterState:
    try:
        with connected(options) as cluster:
            return read_cluster_state(cluster, options.topic)
    except CommandError as error:
        raise CommandError(str(error)) from error  # a refused query is status 2, not 1: the health is unknown


def _wait_until_healthy(options: argparse.Namespace) -> ClusterState:
    """Return the state when the cluster is healthy, or the last state when the time is over.

    Until then an unreachable cluster is queried again.
    """
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


def _watch(options: argparse.Namespace) -> NoReturn:
    """Show the state at an interval until Ctrl-C."""
    is_live = can_repaint(sys.stdout) and not options.json
    with own_screen() if is_live else nullcontext():
        while True:
            moment = time.time()
            try:
                state = _read(options)
                problems = state.problems(options.brokers)
                lines = show(state, problems, with_all=_with_all(options))
                document = state_json(state, problems, with_all=_with_all(options))
            except CommandError as error:
                lines = [f"tailrace: {error}"]
                document = {"healthy": False, "problems": [str(error)]}
            if options.json:
                print_lines(json_line({"time": int(moment * 1000), **document}))
            elif is_live:
                paint([time.strftime("%H:%M:%S"), *lines])
            else:
                print_lines(time.strftime("%H:%M:%S"), *lines, "")
            sys.stdout.flush()
            time.sleep(options.watch)
