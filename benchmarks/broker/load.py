"""Load: `load.c`, compiled once per run, and its output."""

from __future__ import annotations

import functools
import json
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

SOURCE = Path(__file__).with_name("load.c")
TIMEOUT_S = 300


class LoadUnavailable(Exception):
    """There is no C compiler here."""


@dataclass(frozen=True)
class LoadResult:
    requests: int
    sent: float
    received: float
    wall_s: float
    cpu_s: float  # CPU time of the generator itself
    errors: int
    samples: int
    p50_us: float
    p99_us: float
    p999_us: float
    max_us: float


@functools.cache
def _directory() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="tailrace-load-")


@functools.cache
def _program() -> str:
    compiler = shutil.which("cc")
    if compiler is None:
        raise LoadUnavailable("no C compiler (cc) for the load generator")
    target = f"{_directory().name}/load"
    subprocess.run([compiler, "-O2", "-o", target, str(SOURCE)], check=True)
    return target


def _frames_file(name: str, frames: Sequence[bytes]) -> str:
    path = Path(_directory().name) / name
    path.write_bytes(b"".join(frames))
    return str(path)


def _run(*arguments: object) -> LoadResult:
    done = subprocess.run(
        [_program(), *map(str, arguments)], capture_output=True, text=True, timeout=TIMEOUT_S, check=False
    )
    if done.returncode:
        raise RuntimeError(f"load {arguments[0]} ended with {done.returncode}: {done.stderr.strip()}")
    result = LoadResult(**json.loads(done.stdout))
    if result.errors:
        raise RuntimeError(f"{result.errors} of {result.requests} requests were refused")
    return result


def run_requests(
    port: int,
    frames: Sequence[bytes],
    *,
    connections: int = 1,
    in_flight: int = 1,
    seconds: float = 3,
    max_bytes: float = 1e12,
    epoch_at: int = -1,
    error_at: Sequence[int] = (),
    name: str = "requests",
) -> LoadResult:
    """Send frames repeatedly, with `in_flight` unanswered requests on each connection.

    Generators that run at once need different names for their files of frames.
    """
    path = _frames_file(name, frames)
    return _run("requests", port, connections, in_flight, seconds, max_bytes, path, epoch_at, *error_at)


def send_each(port: int, frames: Sequence[bytes], *, error_at: Sequence[int]) -> None:
    """Send each frame once, one after the other."""
    _run("requests", port, 1, 1, 120, -len(frames), _frames_file("requests", frames), -1, *error_at)


def send_many(port: int, frame: bytes, count: int, *, connections: int, in_flight: int) -> None:
    """Send one frame `count` times, without a time limit."""
    _run("requests", port, connections, in_flight, TIMEOUT_S - 30, -count, _frames_file("requests", [frame]), -1)


def run_latency(
    port: int,
    produce: Sequence[bytes],
    fetch: bytes,
    *,
    producers: int,
    rate: float,
    seconds: float,
    offset_at: int,
    offset: int,
) -> LoadResult:
    """Send Produce requests at a rate, with a consumer that waits for their records."""
    produce_path, fetch_path = _frames_file("produce", produce), _frames_file("fetch", [fetch])
    return _run("latency", port, producers, rate, seconds, produce_path, fetch_path, offset_at, offset)
