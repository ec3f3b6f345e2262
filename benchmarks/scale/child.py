"""Measurements in separate processes: `in_process(step, **arguments)` runs a function by its name and returns its
figures.

So memory that one measurement leaves does not count for another.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]


def in_process(step: str, **arguments: Any) -> dict[str, float]:
    """Run `step`, a module:function below benchmarks.scale, with the arguments, and return its figures by name."""
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.scale.child", step, json.dumps(arguments)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'src'}"},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def memory_mb(name: str = "Pss") -> float:
    """Return this process's memory as the kernel counts it: Pss, or VmHWM for its peak."""
    source = "/proc/self/smaps_rollup" if name == "Pss" else "/proc/self/status"
    for line in Path(source).read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) / 1024
    raise AssertionError(f"{source} does not show {name}")


def cpu_s(work: Callable[[], Any]) -> float:
    """Return the CPU time of some work, run once."""
    began = time.process_time()
    work()
    return time.process_time() - began


def cpu_us(work: Callable[[], Any], *, at_least_s: float = 0.3, times: int = 2_000) -> float:
    """Return the CPU time of repeated work in microseconds per run; the first run does not count."""
    work()
    done, began = 0, time.process_time()
    while done < times and time.process_time() - began < at_least_s:
        work()
        done += 1
    return (time.process_time() - began) / max(done, 1) * 1e6


def freeze_heap() -> None:
    """Exclude all current objects from garbage collections, as a broker does after its start."""
    gc.collect()
    gc.freeze()
    gc.enable()


def main() -> None:
    gc.disable()  # as in a broker that starts
    module, _, function = sys.argv[1].partition(":")
    step = getattr(importlib.import_module(f"benchmarks.scale.{module}"), function)
    print(json.dumps(step(**json.loads(sys.argv[2]))))


if __name__ == "__main__":
    main()
