"""VerifyState: a directory with the verified segments, so that a long job can be resumed.

Each segment has a JSON file, in a folder with the name of its partition: the result of the check, and the sizes and
modification times of the segment's log, its indexes and the leader epochs. The result is used while these are
unchanged. Tasks write results as they go, so a killed job loses only the segments that were being checked.
"""

from __future__ import annotations

import json
import os
from hashlib import sha256
from typing import Any

from tailrace.log.disk import file_names
from tailrace.log.disk.files import Files, RemoteFiles, join
from tailrace.log.inspect.recorded_check import RecordedCheck
from tailrace.model.ids import Offset

_VERSION = 1
_KINDS = (file_names.LOG, file_names.OFFSET_INDEX, file_names.TIME_INDEX, file_names.TRANSACTION_INDEX)


class VerifyState:
    def __init__(self, path: str, *, deep: bool) -> None:
        self._path = path
        self._deep = deep

    def _note_path(self, folder: str, base_offset: Offset) -> str:
        # Two directories may have partitions of the same name.
        whole = folder if "://" in folder else os.path.abspath(folder)
        place = sha256(whole.encode()).hexdigest()[:12]
        return os.path.join(self._path, f"{os.path.basename(folder)}.{place}", f"{base_offset:020d}.json")

    def read(self, files: Files, folder: str, base_offset: Offset) -> RecordedCheck | None:
        try:
            with open(self._note_path(folder, base_offset), encoding="utf-8") as file:
                note = json.load(file)
            is_same = note["facts"] == self.facts(files, folder, base_offset)
            return RecordedCheck.from_json(note["check"]) if is_same else None
        except (OSError, ValueError, KeyError, TypeError):
            return None  # without a readable result the segment is verified again

    def facts(self, files: Files, folder: str, base_offset: Offset) -> dict[str, Any]:
        """Return the sizes and times of the files, taken before the check. A result is valid while they are equal."""
        names = [file_names.segment_file(base_offset, kind) for kind in _KINDS]
        return {
            "version": _VERSION,
            "deep": self._deep,
            "files": {name: _stamp(files, join(folder, name)) for name in [*names, file_names.LEADER_EPOCH_CHECKPOINT]},
        }

    def write(self, folder: str, base_offset: Offset, facts: dict[str, Any], check: RecordedCheck) -> None:
        path = self._note_path(folder, base_offset)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        # Another attempt of the same task may be writing as well.
        temporary = f"{path}.{os.getpid()}.tmp"
        with open(temporary, "w", encoding="utf-8") as file:
            json.dump({"facts": facts, "check": check.to_json()}, file)
        os.replace(temporary, path)


def _stamp(files: Files, path: str) -> list[int] | None:
    try:
        if isinstance(files, RemoteFiles):
            return [files.size(path), files.modified_ms(path)]
        found = os.stat(path)
    except FileNotFoundError:
        return None
    return [found.st_size, found.st_mtime_ns]
