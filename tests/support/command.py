"""Runs the command line inside the test process, and creates data directories for it."""

from __future__ import annotations

import argparse
import io
import json
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple

from tailrace.cli.main import main
from tailrace.cli.parsing.parser import build_parser
from tailrace.log.directories.log_directory import LogDirectory
from tailrace.log.disk.files import DiskFiles
from tailrace.model.configs.topic_settings import parse_topic_config
from tailrace.model.ids import TopicId, TopicPartition
from tests.support.our_workload import KINDS, TOPIC_CONFIGS, Writer

NOW_MS = 1_700_000_000_000
SMALL = {"internal.segment.bytes": "3000", "index.interval.bytes": "300"}


class Ran(NamedTuple):
    status: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def json_lines(self) -> list[Any]:
        return [json.loads(line) for line in self.lines]


def tailrace(*arguments: object) -> Ran:
    """Run `tailrace ARGUMENTS`."""
    out, err = io.TextIOWrapper(io.BytesIO(), "utf-8", newline="\n"), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err), unchanged_process():
        status = main([str(argument) for argument in arguments])
    out.seek(0)
    return Ran(status, out.read(), err.getvalue())


def commands_that_connect() -> set[str]:
    """Return the names of all commands that connect to a cluster, without jobs of Spark and the console, a server."""
    return {name for name in _with_bootstrap(build_parser(), ()) if not name.startswith("job ")} - {"console"}


def _with_bootstrap(parser: argparse.ArgumentParser, path: tuple[str, ...]) -> Iterator[str]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, verb in action.choices.items():
                yield from _with_bootstrap(verb, (*path, name))
        elif action.dest == "bootstrap":
            yield " ".join(path)


@contextmanager
def unchanged_process() -> Iterator[None]:
    """Restore afterwards what `serve` changes in its process: the root logger and the umask."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    umask = os.umask(0o077)
    os.umask(umask)
    try:
        yield
    finally:
        root.handlers[:] = handlers
        root.setLevel(level)
        os.umask(umask)


def write_directory(path: Path, *kinds: str, clean: bool = True) -> Path:
    """Create a data directory with a partition `kind-0` for each kind of workload (by default all)."""
    directory = LogDirectory(DiskFiles(), str(path), new_id=lambda: "0" * 32)
    for kind in kinds or KINDS:
        config = parse_topic_config({**SMALL, **TOPIC_CONFIGS.get(kind, {})})
        topic_id = TopicId.parse("AAAAAAAAQACAAAAAAAAAAQ")
        KINDS[kind](Writer(directory.create(TopicPartition(kind, 0), config, NOW_MS, topic_id), NOW_MS))
    if clean:
        directory.close(NOW_MS)
    else:
        high_watermarks = {partition: log.high_watermark for partition, log in directory.logs.items()}
        for log in directory.logs.values():
            for segment in log.segments:
                segment.flush()
        directory.checkpoint(high_watermarks)
        directory.abandon()
    return path


def contents(path: Path) -> dict[str, bytes]:
    """Return the contents of every file below a folder, to detect changes."""
    return {str(file.relative_to(path)): file.read_bytes() for file in sorted(path.rglob("*")) if file.is_file()}
