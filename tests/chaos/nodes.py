"""Nodes: brokers of ours, brokers of Apache Kafka and its controllers, all alike to whoever kills or starts them."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from subprocess import TimeoutExpired

from tests.support.kafka_broker import KafkaBroker
from tests.support.tailrace_process import TailraceProcess

LEAVE_TIMEOUT_S = 60.0


class Node:
    def __init__(self, name: str, server: TailraceProcess | KafkaBroker, *, is_controller: bool = False) -> None:
        self.name = name
        self.server = server
        self.is_controller = is_controller
        self.is_paused = False

    @property
    def pid(self) -> int | None:
        return None if self.server.process is None else self.server.process.pid

    @property
    def is_running(self) -> bool:
        return self.server.process is not None

    @property
    def exit_status(self) -> int | None:
        """Of a process that nobody has ended."""
        return None if self.server.process is None else self.server.process.poll()

    @property
    def log(self) -> Path:
        server = self.server
        if isinstance(server, TailraceProcess):
            return server.data.parent / f"{server.data.name}.stderr"
        return server.directory / "kafka.log"

    def launch(self) -> None:
        self.server.launch()
        self.note("chaos: starts")

    def kill(self) -> None:
        self.note("chaos: kill -9")
        self.is_paused = False
        self.server.crash() if isinstance(self.server, KafkaBroker) else self.server.kill()

    def pause(self) -> None:
        assert self.pid is not None
        self.note("chaos: paused")
        self.is_paused = True
        os.kill(self.pid, signal.SIGSTOP)

    def resume(self) -> None:
        assert self.pid is not None
        self.is_paused = False
        os.kill(self.pid, signal.SIGCONT)
        self.note("chaos: resumed")

    def leave(self) -> bool:
        """A clean stop, for which a broker may need its controllers; says whether it came to that in time."""
        process = self.server.process
        assert process is not None
        self.note("chaos: SIGTERM")
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(LEAVE_TIMEOUT_S)
        except TimeoutExpired:
            self.kill()
            return False
        self.server._forget()
        return True

    def note(self, text: str) -> None:
        """Into the node's own log, so that what it says next is understood."""
        with self.log.open("a") as log:
            log.write(f"---- {text}\n")
