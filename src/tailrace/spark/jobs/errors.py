"""JobError: why a job cannot do what was asked, in one sentence that names the place."""

from __future__ import annotations

from typing import Any


class JobError(Exception):
    """`status` is what the command line ends with: 2 for a question that cannot be answered, 1 for damage found."""

    def __init__(self, text: str, *, status: int = 2) -> None:
        super().__init__(text)
        self.status = status

    def __reduce__(self) -> tuple[Any, ...]:
        # It travels from a task to the driver, and keeps its kind and its status.
        return _restored, (type(self), str(self), self.status)


def _restored(kind: type[JobError], text: str, status: int) -> JobError:
    error = kind.__new__(kind, text)
    error.status = status
    return error
