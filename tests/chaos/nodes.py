"""Nodes: Tailrace brokers, Apache Kafka brokers and Kafka controllers behind one interface for starting and killing."""

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
        """Return the exit status of a process that ended by itself, else None."""
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
        """Stop cleanly; a broker may need its controllers for this. Return True if the node stopped in time."""
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
        """Write a line into the node's own log, as context for the lines that follow."""
        with self.log.open("a") as log:
            log.write(f"---- {text}\n")
