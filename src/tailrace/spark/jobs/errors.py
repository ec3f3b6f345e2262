"""JobError: the reason why a job cannot run, in one sentence."""

from __future__ import annotations

from typing import Any


class JobError(Exception):
    """An error of a job. `status` is the command's exit status: 2 if the job cannot run, 1 if the log is damaged.

    `is_transient` is True if a later try may succeed, as after the restart of a broker.
    """

    is_transient = False

    def __init__(self, text: str, *, status: int = 2, is_transient: bool | None = None) -> None:
        super().__init__(text)
        self.status = status
        if is_transient is not None:
            self.is_transient = is_transient

    def __reduce__(self) -> tuple[Any, ...]:
        # The error is pickled from a task to the driver, with its class and status.
        return _restored, (type(self), str(self), self.status, self.is_transient)


def _restored(kind: type[JobError], text: str, status: int, is_transient: bool) -> JobError:
    error = kind.__new__(kind, text)
    error.status, error.is_transient = status, is_transient
    return error


class TasksFailed(JobError):
    """Spark has given up a stage. Some of its tasks may still run."""


# Errors of catalogs and object stores that a later try does not heal, by the names of their classes: pyiceberg,
# delta-rs, requests, and Python itself.
_PERMANENT = frozenset({
    "AuthorizationExpiredError",
    "BadRequestError",
    "DeltaProtocolError",
    "ForbiddenError",
    "NamespaceNotEmptyError",
    "NoSuchIcebergTableError",
    "NoSuchNamespaceError",
    "NoSuchTableError",
    "NoSuchViewError",
    "OAuthError",
    "SchemaMismatchError",
    "SignError",
    "TableNotFoundError",
    "UnauthorizedError",
    "ValidationError",
    "ValidationException",
})  # fmt: skip
_MISTAKES = (
    ArithmeticError, AssertionError, AttributeError, ImportError, LookupError, NotImplementedError, PermissionError,
    TypeError,
)  # fmt: skip


def can_heal(error: BaseException) -> bool:
    """Return True if a later try may succeed after this error of a catalog, a table or an object store."""
    if isinstance(error, JobError):
        return error.is_transient
    kinds = {kind.__name__ for kind in type(error).__mro__}
    if isinstance(error, _MISTAKES) or kinds & _PERMANENT:
        return False
    return not isinstance(error, ValueError) or isinstance(error, OSError)
