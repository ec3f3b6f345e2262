"""Recorder: drives an oracle log and records every step, so that our log can replay them without Kafka.

A step is one call of `OracleLog` (or `open`, or `advance`), as JSON: its name, its arguments, the clock, and the result
or error. Bytes are base64.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.support.log_oracle import LogOracle
from tests.support.oracle_log import OracleLog
from tests.support.oracle_types import AppendInfo, LogState, OracleError, to_base64


class Recorder:
    """The recording of one partition directory. `ended` is clean, closed or crashed."""

    def __init__(self, oracle: LogOracle, directory: Path) -> None:
        self.oracle = oracle
        self.directory = directory
        self.steps: list[dict[str, Any]] = []
        self.changes: list[str] = []  # later changes of the files by the scenario's own code
        self.ended = ""
        self.config: dict[str, str] = {}
        self.final: LogState | None = None  # state just before the end
        self._log: OracleLog | None = None

    @property
    def log(self) -> OracleLog:
        assert self._log is not None, "no log is open"
        return self._log

    def open(self, config: Mapping[str, str], **arguments: Any) -> None:
        self.config = dict(config)
        step = self._note("open", {"config": dict(config), **arguments})
        self._log = self.oracle.open(self.directory, config, **arguments)
        step["result"] = None

    def append(self, records: bytes, **arguments: Any) -> AppendInfo:
        """Append as leader. For other calls use `do`."""
        info = self.do("append_as_leader", records=records, **arguments)
        assert isinstance(info, AppendInfo)
        return info

    def do(self, call: str, **arguments: Any) -> Any:
        """Make one call of OracleLog."""
        step = self._note(call, arguments)
        result = getattr(self.log, call)(**arguments)
        step["result"] = plain(result)
        return result

    def refuse(self, call: str, **arguments: Any) -> OracleError:
        """Make a call that Kafka must refuse."""
        step = self._note(call, arguments)
        try:
            getattr(self.log, call)(**arguments)
        except OracleError as error:
            step["error"] = {"kind": error.kind, "code": error.code, "message": error.message}
            return error
        raise AssertionError(f"Kafka did not refuse {call}")

    def advance(self, ms: int) -> None:
        """Move the clock. Pending deletions that become due are done."""
        self.oracle.advance(ms)
        self._note("advance", {})["result"] = None

    def end(self, call: str) -> None:
        """End with shut_down (clean), close or crash."""
        self.final = self.log.state()
        self.do(call)
        self.ended = {"shut_down": "clean", "close": "closed", "crash": "crashed"}[call]

    def change(self, what: str) -> None:
        """Record a description of a direct change of the files."""
        assert self.ended, "files may be changed only after Kafka has closed them"
        self.changes.append(what)

    def _note(self, call: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        step = {"call": call, "now_ms": self.oracle.now_ms, "arguments": plain(dict(arguments))}
        self.steps.append(step)
        return step


def plain(value: Any) -> Any:
    """Return a value in the form of JSON."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, OracleError):
        return {"kind": value.kind, "code": value.code, "message": value.message}
    if isinstance(value, bytes):
        return to_base64(value)
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value
