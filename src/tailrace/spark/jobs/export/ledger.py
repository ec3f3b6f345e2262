"""ExportLedger: which offsets of a log are in a directory of Parquet files, each record once, whatever is killed when.

    OUT/…/*.parquet            the table: readers see nothing else, for they pass over names that begin with `_`
    OUT/_tailrace/export.json  what is exported, so that the next run does the same
    OUT/_tailrace/staging/N/   files of commit N that are being written        killed: thrown away, written again
    OUT/_tailrace/commits/N    which offsets and which files: the commit       killed after it: the next run carries on

A commit's files get their place in the table after the commit itself, one by one; to do it again does no harm.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from tailrace.model.ids import Offset, TopicPartition
from tailrace.spark.jobs.errors import JobError

_FOLDER = "_tailrace"
_VERSION = 1


class StagedFile(NamedTuple):
    staged: str  # below the commit's staging folder
    place: str  # below the table's folder
    records: int
    size: int


class ExportLedger:
    def __init__(self, path: str) -> None:
        self.path = os.path.abspath(path)
        self._folder = os.path.join(self.path, _FOLDER)
        self._lock: int | None = None
        self.ends: dict[TopicPartition, Offset] = {}
        self.commits = 0
        self.records = 0

    def _in(self, *parts: str) -> str:
        return os.path.join(self._folder, *parts)

    def open(self, settings: Mapping[str, Any]) -> None:
        """Begin, or go on where the last run stopped; JobError if the directory is somebody else's."""
        is_ours = os.path.exists(self._in("export.json"))
        if not is_ours and os.path.isdir(self.path) and os.listdir(self.path) not in ([], [_FOLDER]):
            raise JobError(f"{self.path} holds files that no export has written: give an empty directory")
        if is_ours:
            self._check_settings(settings)
        os.makedirs(self._in("commits"), exist_ok=True)
        self._lock = os.open(self._in("lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.lockf(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(self._lock)
            self._lock = None
            raise JobError(f"another export into {self.path} is running") from None
        if not is_ours:
            _write_atomically(self._in("export.json"), {"version": _VERSION, **settings})
        self._recover()

    def close(self) -> None:
        """Let go; what was written for a commit that did not come is thrown away."""
        if self._lock is not None:
            shutil.rmtree(self._in("staging"), ignore_errors=True)
            os.close(self._lock)
            self._lock = None

    @property
    def settings(self) -> dict[str, Any]:
        """What the first run noted; empty before it."""
        return _read(self._in("export.json")) if os.path.exists(self._in("export.json")) else {}

    def _check_settings(self, settings: Mapping[str, Any]) -> None:
        known = self.settings
        if known.pop("version", None) != _VERSION:
            raise JobError(f"{self._in('export.json')} was written by another version of tailrace")
        for name in sorted({*known, *settings}):
            if known.get(name) != settings.get(name):
                raise JobError(
                    f"{self.path} was begun with {name}={known.get(name)!r} and cannot go on with "
                    f"{settings.get(name)!r}: export into another directory"
                )

    def _recover(self) -> None:
        names = sorted(name for name in os.listdir(self._in("commits")) if name.isdigit())
        for name in names:
            commit = _read(self._in("commits", name))
            self.records += commit["records"]
        if names:
            self._place(int(names[-1]), [StagedFile(*file) for file in commit["files"]])
            self.ends = {TopicPartition(topic, number): end for topic, number, end in commit["ends"]}
        self.commits = len(names)
        shutil.rmtree(self._in("staging"), ignore_errors=True)

    def stage(self) -> str:
        """The folder for the files of the next commit."""
        folder = self._in("staging", str(self.commits))
        os.makedirs(folder, exist_ok=True)
        return folder

    def commit(self, ends: Mapping[TopicPartition, Offset], files: Sequence[StagedFile]) -> None:
        """From here on the files' records are in the table, and their offsets are done."""
        ends = {**self.ends, **ends}
        for file in files:
            _sync(self._in("staging", str(self.commits), file.staged))
        value = {
            "ends": [[*partition, end] for partition, end in sorted(ends.items())],
            "records": sum(file.records for file in files),
            "files": [list(file) for file in files],
        }
        _write_atomically(self._in("commits", f"{self.commits:08d}"), value)
        self._place(self.commits, files)
        shutil.rmtree(self._in("staging"), ignore_errors=True)
        self.ends = ends
        self.records += sum(file.records for file in files)
        self.commits += 1

    def _place(self, number: int, files: Sequence[StagedFile]) -> None:
        for file in files:
            source = self._in("staging", str(number), file.staged)
            target = os.path.join(self.path, file.place)
            if os.path.exists(source):
                os.makedirs(os.path.dirname(target), exist_ok=True)
                os.replace(source, target)
            elif not os.path.exists(target):
                raise JobError(f"{target} is gone: the export in {self.path} is not whole any more")
        for folder in {os.path.dirname(os.path.join(self.path, file.place)) for file in files}:
            _sync(folder)


def _read(path: str) -> dict[str, Any]:
    try:
        with open(path, encoding="utf-8") as file:
            value: dict[str, Any] = json.load(file)
            return value
    except ValueError as error:
        raise JobError(f"{path} cannot be read: {error}") from None


def _write_atomically(path: str, value: Mapping[str, Any]) -> None:
    with open(path + ".tmp", "w", encoding="utf-8") as file:
        json.dump(value, file, indent=1)
        file.flush()
        os.fsync(file.fileno())
    os.replace(path + ".tmp", path)
    _sync(os.path.dirname(path))


def _sync(path: str) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
