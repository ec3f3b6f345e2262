"""Finding: a problem or a note about a file, with its position. InspectionFailed: an object that cannot be
inspected."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple


class Severity(Enum):
    """A problem should be repaired. A note is harmless information."""

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


class InspectionFailed(Exception):
    """An object that cannot be inspected. The text gives the file and the reason."""
