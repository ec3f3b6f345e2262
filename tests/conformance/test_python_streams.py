"""Stream processors for Python, unchanged, at Kafka and at Tailrace: Faust, Quix Streams and Bytewax count words.

Their state survives in the cluster (Faust, Quix Streams) or in a recovery store (Bytewax).
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

import pytest

from tests.support.confluent import create_topic
from tests.support.foreign_clients import PYTHON, Program, python_with
from tests.support.word_count import PATIENCE_S, WordCount, write_lines

pytestmark = pytest.mark.slow

PARTITIONS = 2
WORDS = ["alpha", "beta", "gamma", "delta", "epsilon"]
STOP_TIMEOUT_S = 30.0


def faust(bootstrap: str, source: str, sink: str, state: Path) -> Program:
    python = python_with("faust-streaming==0.15.3")
    script = str(PYTHON / "faust_words.py")
    return Program((*python.command, script, bootstrap, source, sink, str(state), "at_least_once"), python.environment)


def quix_streams(bootstrap: str, source: str, sink: str, state: Path) -> Program:
    python = python_with("quixstreams==3.28.1")
    script = str(PYTHON / "quix_words.py")
    return Program((*python.command, script, bootstrap, source, sink, str(state), "exactly-once"), python.environment)


def bytewax(bootstrap: str, source: str, sink: str, state: Path) -> Program:
    python = python_with("bytewax[kafka]==0.21.1")
    if not state.exists():
        state.mkdir()
        Program((*python.command, "-m", "bytewax.recovery"), python.environment)(str(state), "1")
    run = ("-m", "bytewax.run", str(PYTHON / "bytewax_words.py"), "-r", str(state), "-s", "1", "-b", "0")
    program = Program((*python.command, *run), python.environment)
    return program.with_environment(BOOTSTRAP=bootstrap, SOURCE=source, SINK=sink)


def test_words_are_counted_by_faust_with_its_table_in_the_cluster(bootstrap: str, topic: str, tmp_path: Path) -> None:
    """There is no restart: Faust 0.15 loses records at a restart, at Kafka too."""
    application = prepare(bootstrap, topic, tmp_path)
    expected = Counter(write(application, 50, 0))
    with running(faust(bootstrap, application.source, application.sink, tmp_path / "state"), tmp_path):
        wait_for_all_counts(application, expected)
        expected.update(write(application, 50, 1))
        wait_for_all_counts(application, expected)


def test_words_are_counted_by_bytewax_with_its_recovery_store(bootstrap: str, topic: str, tmp_path: Path) -> None:
    application, state = prepare(bootstrap, topic, tmp_path), tmp_path / "recovery"
    expected: Counter[str] = Counter()
    for round_number in range(3):
        expected.update(write(application, 50, round_number))
        with running(bytewax(bootstrap, application.source, application.sink, state), tmp_path) as process:
            found = wait_for_all_counts(application, expected)
            if round_number % 2:
                process.kill()
    assert {word: max(counts) for word, counts in found.items()} == expected


def test_words_are_counted_by_quix_streams_exactly_once_over_kills(bootstrap: str, topic: str, tmp_path: Path) -> None:
    """Each run begins without local state. Every second run is killed at work."""
    application, state = prepare(bootstrap, topic, tmp_path), tmp_path / "state"
    expected: Counter[str] = Counter()
    for round_number in range(5):
        expected.update(write(application, 50, round_number))
        with running(quix_streams(bootstrap, application.source, application.sink, state), tmp_path) as process:
            application.wait_for(expected, PARTITIONS)
            if round_number % 2:
                expected.update(write(application, 20, round_number + 10))
                process.kill()
        shutil.rmtree(state, ignore_errors=True)


def prepare(bootstrap: str, topic: str, directory: Path) -> WordCount:
    application = WordCount(bootstrap, directory, f"{topic[-60:]}-lines", f"{topic[-60:]}-counts")
    for name in (application.source, application.sink):
        create_topic(bootstrap, name, PARTITIONS)
    return application


def write(application: WordCount, count: int, seed: int) -> dict[str, int]:
    random = Random(seed)
    lines = [" ".join(random.choices(WORDS, k=random.randint(1, 6))) for _ in range(count)]
    return write_lines(application.bootstrap, application.source, lines)


def wait_for_all_counts(application: WordCount, expected: Counter[str]) -> dict[str, list[int]]:
    """Wait until every count up to the last one was written, at least once each. Return all written counts."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        found = application.counts(PARTITIONS)
        if all(set(found[word]) >= set(range(1, count + 1)) for word, count in expected.items()):
            return found
        assert time.monotonic() < deadline, {word: (len(set(found[word])), n) for word, n in expected.items()}
        time.sleep(0.5)


@contextmanager
def running(program: Program, directory: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Run a program, and stop it cleanly at the end unless it was killed. An error shows the end of its output."""
    path = directory / "program.log"
    with path.open("ab") as log:
        process = subprocess.Popen(
            program.command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            env={**os.environ, **dict(program.environment)},
        )
    try:
        yield process
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
            process.wait(STOP_TIMEOUT_S)
    except (AssertionError, subprocess.TimeoutExpired) as error:
        raise AssertionError(f"{error}\n{path.read_text(errors='replace')[-4_000:]}") from error
    finally:
        process.kill()
        process.wait()
