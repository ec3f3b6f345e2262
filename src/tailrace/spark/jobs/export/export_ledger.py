"""ExportLedger: the offsets that are in a directory of Parquet files. Each record is exported once, even after a crash.

    OUT/…/*.parquet            the table; readers skip names that start with `_`, so they see nothing else
    OUT/_tailrace/export.json  the settings of the export, which later runs must repeat
    OUT/_tailrace/staging/N/   files of commit N during writing; after a crash they are deleted and written again
    OUT/_tailrace/commits/N    the commit: its offsets and files; after a crash the next run completes it

After the commit, its files are moved into the table one by one. Repeating a move is harmless.
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
from tailrace.spark.source.transports.topic_identity import TopicIdentity, changed_text

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
        self.identities: dict[str, TopicIdentity] = {}  # of the topics in the last commit
        self.commits = 0
        self.records = 0

    def _in(self, *parts: str) -> str:
        return os.path.join(self._folder, *parts)

    def open(self, settings: Mapping[str, Any]) -> None:
        """Start an export, or continue after the last commit. Raise JobError if the directory has other files."""
        is_ours = os.path.exists(self._in("export.json"))
        if not is_ours and os.path.isdir(self.path) and os.listdir(self.path) not in ([], [_FOLDER]):
            raise JobError(f"{self.path} has files that are not from an export: give an empty directory")
        if is_ours:
            self._check_settings(settings)
        os.makedirs(self._in("commits"), exist_ok=True)
        self._lock = os.open(self._in("lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.lockf(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(self._lock)
            self._lock = None
            raise JobError(f"another export into {self.path} is running; wait until it has ended") from None
        if not is_ours:
            _write_atomically(self._in("export.json"), {"version": _VERSION, **settings})
        self._recover()

    def close(self) -> None:
        """Release the lock, and delete files of an unfinished commit."""
        if self._lock is not None:
            shutil.rmtree(self._in("staging"), ignore_errors=True)
            os.close(self._lock)
            self._lock = None

    @property
    def settings(self) -> dict[str, Any]:
        """The settings of the first run; empty before it."""
        return _read(self._in("export.json")) if os.path.exists(self._in("export.json")) else {}

    def _check_settings(self, settings: Mapping[str, Any]) -> None:
        known = self.settings
        if known.pop("version", None) != _VERSION:
            raise JobError(f"{self._in('export.json')} was written by another version of tailrace")
        for name in sorted({*known, *settings}):
            if known.get(name) != settings.get(name):
                raise JobError(
                    f"{self.path} was exported with {name}={known.get(name)!r}, which cannot be changed to "
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
            # Commits of older versions have no ids.
            self.identities = {topic: TopicIdentity(*ids) for topic, ids in commit.get("topics", {}).items()}
        self.commits = len(names)
        shutil.rmtree(self._in("staging"), ignore_errors=True)

    def check(
        self,
        identities: Mapping[str, TopicIdentity],
        latest: Mapping[TopicPartition, Offset],
        known: Mapping[str, TopicIdentity] | None = None,
    ) -> None:
        """Raise JobError if a topic is not the one that was exported, or has lost exported records.

        `known` are the ids of this run; by default those of the last commit are compared.
        """
        for topic, there in (self.identities if known is None else known).items():
            text = changed_text(self.path, topic, there, identities.get(topic, there))
            if text is not None:
                raise JobError(f"{text}; export into another directory")
        for partition, last in latest.items():
            if self.ends.get(partition, 0) > last:
                raise JobError(
                    f"{partition} ends at offset {last}, but {self.path} has its records up to {self.ends[partition]}: "
                    "the log has lost records; export into another directory"
                )

    def stage(self) -> str:
        """Return the folder for the files of the next commit."""
        folder = self._in("staging", str(self.commits))
        os.makedirs(folder, exist_ok=True)
        return folder

    def commit(
        self,
        ends: Mapping[TopicPartition, Offset],
        files: Sequence[StagedFile],
        identities: Mapping[str, TopicIdentity],
    ) -> None:
        """Commit: add the files to the table, and record the offsets as exported."""
        ends = {**self.ends, **ends}
        identities = {**self.identities, **identities}
        for file in files:
            _sync(self._in("staging", str(self.commits), file.staged))
        value = {
            "ends": [[*partition, end] for partition, end in sorted(ends.items())],
            "topics": {topic: [one.topic_id, one.cluster_id] for topic, one in sorted(identities.items())},
            "records": sum(file.records for file in files),
            "files": [list(file) for file in files],
        }
        _write_atomically(self._in("commits", f"{self.commits:08d}"), value)
        self._place(self.commits, files)
        shutil.rmtree(self._in("staging"), ignore_errors=True)
        self.ends, self.identities = ends, identities
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
                raise JobError(f"{target} is missing: the export in {self.path} is no longer complete")
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
