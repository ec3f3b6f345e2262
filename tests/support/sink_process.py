"""A driver that calls the sink like Spark's driver, as a process that a test kills.

    python -m tests.support.sink_process BOOTSTRAP TOPIC NAME CHECKPOINT BATCHES SEED

The checkpoint is a file with a line for each finished micro-batch; missing micro-batches are run again in order. Each
task is a process too; some are killed (-9) in the middle and retried as another attempt. A commit that fails is
followed by an abort, and ends the process with status 1.
"""

from __future__ import annotations

import os
import pickle
import random
import signal
import sys
import time
from pathlib import Path
from typing import Any

from tests.support.sink_run import SinkQuery

TASKS = 3
ATTEMPTS = 20


def rows(name: str, batch: int, task: int) -> list[bytes]:
    return [f"{name} {batch} {task} {row}".encode() for row in range(1 + (batch * 7 + task * 3) % 50)]


def done(checkpoint: Path) -> int:
    return len(checkpoint.read_bytes().splitlines()) if checkpoint.exists() else 0


def message_of(query: SinkQuery, writer: Any, batch: int, task: int, dice: random.Random) -> Any:
    """Return the task's message to the driver, after as many attempts as it takes."""
    for attempt in range(ATTEMPTS):
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            status = 1
            try:
                message = query.task(writer, batch, task, rows(query.query_id, batch, task), attempt)
                os.write(writing, pickle.dumps(message))
                status = 0
            finally:
                os._exit(status)
        os.close(writing)
        if dice.random() < 0.1:
            time.sleep(dice.random() * 0.05)
            os.kill(child, signal.SIGKILL)
        reported = b""
        while piece := os.read(reading, 65536):
            reported += piece
        os.close(reading)
        if os.waitpid(child, 0)[1] == 0:
            return pickle.loads(reported)
    raise AssertionError(f"task {task} of batch {batch} failed {ATTEMPTS} times")


def main(bootstrap: str, topic: str, name: str, checkpoint: str, batches: str, seed: str) -> None:
    dice = random.Random(int(seed))
    noted = Path(checkpoint)
    query = SinkQuery(bootstrap, topic, name)
    for batch in range(done(noted), int(batches)):
        messages: list[Any] = []
        try:
            writer = query.begin()
            messages += [message_of(query, writer, batch, task, dice) for task in range(TASKS)]
            query.end(batch, messages)
        except Exception:
            query.end(batch, messages, is_commit=False)
            raise
        with noted.open("ab") as file:
            file.write(b"%d\n" % batch)
            file.flush()
            os.fsync(file.fileno())


if __name__ == "__main__":
    main(*sys.argv[1:])
