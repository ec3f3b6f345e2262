"""The Python processes of Spark below a driver, for tests that kill them."""

from __future__ import annotations

import contextlib
import os
import random
import signal
from pathlib import Path


def kill_a_worker(driver: int, dice: random.Random) -> bool:
    """Kill a Python process of a driver: one that runs a task, a commit or the source. Return False without one."""
    below = [process for process in _descendants(driver) if b"pyspark.daemon" in _content(process)]
    if not below:
        return False
    with contextlib.suppress(ProcessLookupError):
        os.kill(int(dice.choice(below).parent.name), signal.SIGKILL)
        return True
    return False


def _content(path: Path) -> bytes:
    """Return the content of a file; nothing if its process has ended."""
    try:
        return path.read_bytes()
    except OSError:
        return b""


def _descendants(root: int) -> list[Path]:
    """Return the command line files of the child processes of a process."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
    found = []
    for process in parents:
        above: int | None = process
        while above is not None and above != root:
            above = parents.get(above)
        if above == root and process != root:
            found.append(Path(f"/proc/{process}/cmdline"))
    return [path for path in found if path.exists()]
