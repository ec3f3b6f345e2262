"""JobError: the reason why a job cannot run, in one sentence."""

from __future__ import annotations

from typing import Any


class JobError(Exception):
    """An error of a job. `status` is the command's exit status: 2 if the job cannot run, 1 if the log is damaged."""

    def __init__(self, text: str, *, status: int = 2) -> None:
        super().__init__(text)
        self.status = status

    def __reduce__(self) -> tuple[Any, ...]:
        # The error is pickled from a task to the driver, with its class and status.
        return _restored, (type(self), str(self), self.status)


def _restored(kind: type[JobError], text: str, status: int) -> JobError:
    error = kind.__new__(kind, text)
    error.status = status
    return error
