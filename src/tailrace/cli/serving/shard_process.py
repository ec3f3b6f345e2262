"""A shard: one of several brokers that `tailrace serve --shards N` has started (`node/shards/shard_child.py`).

    python -m tailrace.cli.serving.shard_process NUMBER

Standard input begins with a line of JSON, the settings and options. Later lines are notices of the parent. When the
input ends, the parent has ended, and the shard stops like at SIGTERM. Standard output has reports for the parent.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any, Final

from tailrace.broker.broker import Broker
from tailrace.cli.errors import CommandError, os_error_text
from tailrace.cli.serving.log_format import set_up_logging
from tailrace.cli.serving.serve_broker import CANNOT_START, checked_settings, log_ready, serve
from tailrace.model.kernel_forms import describe_kernels
from tailrace.server.loop.clock import wall_clock_ms
from tailrace.server.server import Server

INTERNAL_ERROR: Final = 3
_READ_BYTES: Final = 65_536
_log = logging.getLogger("tailrace.serve")


def main(number: int) -> int:
    began = time.perf_counter()
    lines = _lines()
    document = json.loads(next(lines))
    set_up_logging(document["logLevel"], document["logFormat"], number)
    try:
        _serve(document, lines, began)
    except CommandError as error:
        return _end(str(error), error.status)
    except OSError as error:
        return _end(os_error_text(error), CANNOT_START)
    except Exception as error:
        _log.critical("internal error; please report it", exc_info=True)
        return _end(f"internal error; please report it: {type(error).__name__}: {error}", INTERNAL_ERROR)
    return 0


def _end(reason: str, status: int) -> int:
    _log.error("the shard ends: %s", reason)
    _report({"error": reason})
    return status


def _serve(document: dict[str, Any], notices: Iterator[str], began: float) -> None:
    brokers: list[Broker] = []

    def report_ready(server: Server) -> None:
        log_ready(server, document["properties"], began)
        threading.Thread(
            target=_follow, args=(notices, server, brokers[0]), name="tailrace-parent", daemon=True
        ).start()
        clients = [str(one) for one in server.endpoints if one.name in names]
        _report({"ready": {"listeners": clients, "kernels": describe_kernels()}})

    config, own_settings = checked_settings(document["properties"])
    inner = config.inter_broker_listener.name
    names = {one.name for one in config.listeners if one.name != inner}
    serve(config, own_settings, document["credentials"], document["clusterId"], report_ready, brokers.append)


def _lines() -> Iterator[str]:
    """Yield the lines of standard input. A thread that waits inside `sys.stdin` would abort the end of the process."""
    unread = b""
    while data := os.read(0, _READ_BYTES):
        *lines, unread = (unread + data).split(b"\n")
        yield from (line.decode() for line in lines)


def _follow(notices: Iterator[str], server: Server, broker: Broker) -> None:
    """Carry out the notices of the parent. Stop when the parent has ended."""
    for line in notices:
        word, _, broker_id = line.partition(" ")
        if word == "ended":
            server.call_soon(_Ended(broker, int(broker_id)))
    os.kill(os.getpid(), signal.SIGTERM)


class _Ended:
    """A call: the process of another broker has ended."""

    def __init__(self, broker: Broker, broker_id: int) -> None:
        self._broker = broker
        self._broker_id = broker_id

    def __call__(self) -> None:
        self._broker.broker_ended(self._broker_id, wall_clock_ms())


def _report(document: dict[str, Any]) -> None:
    print(json.dumps(document), flush=True)


if __name__ == "__main__":
    raise SystemExit(main(int(sys.argv[1])))
