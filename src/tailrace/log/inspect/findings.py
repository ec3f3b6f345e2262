"""Finding: something about a file that a person should know, with its place. CannotLook: not even that is to be had."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple


class Severity(Enum):
    """A problem is wrong and should be repaired; a note is worth knowing and harms nobody."""

    PROBLEM = "problem"
    NOTE = "note"


class Finding(NamedTuple):
    path: str
    message: str
    position: int | None = None
    severity: Severity = Severity.PROBLEM

    @property
    def is_problem(self) -> bool:
        return self.severity is Severity.PROBLEM

    @property
    def place(self) -> str:
        return self.path if self.position is None else f"{self.path} at position {self.position}"

    def __str__(self) -> str:
        return f"{self.place}: {self.message}"


class CannotLook(Exception):
    """What was to be looked at cannot be; says why, with the file."""
