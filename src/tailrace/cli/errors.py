"""CommandError: ends a command with one sentence for the user. Remedies for modules that cannot be imported."""

from __future__ import annotations

from typing import Final

USAGE_ERROR: Final = 2  # the exit status
# Modules of Python that Windows lacks. A broker and the commands on data directories need them.
POSIX_MODULES: Final = frozenset({"fcntl", "resource"})
# Packages that only some commands need, with the extra of Tailrace that installs each.
EXTRAS: Final = {
    "pyspark": "spark",
    "pyarrow": "spark",
    "deltalake": "delta",
    "pyiceberg": "iceberg",
    "fastavro": "avro",
    "joserfc": "oauth",
    "shtab": "completion",
}


class CommandError(Exception):
    """An error message and the exit status of the command: 2, or 1 if a broker refused the request.

    `code` is the name of the broker's error code, if there is one.
    """

    def __init__(self, text: str, *, status: int = USAGE_ERROR, code: str | None = None) -> None:
        super().__init__(text)
        self.status = status
        self.code = code


def os_error_text(error: OSError) -> str:
    """Return an error of the system as one sentence, without its number."""
    return f"{error.filename}: {error.strerror}" if error.filename else str(error.strerror or error)


def explain_missing_module(error: ModuleNotFoundError) -> str | None:
    """Return the remedy in one sentence, or None if the error is a bug."""
    package = (error.name or "").partition(".")[0]
    if package in POSIX_MODULES:
        return (
            f"this command needs Linux or macOS: this system's Python has no module {package}. "
            "On Windows, run it in WSL or in a container"
        )
    if package in EXTRAS:
        return f"this command needs {package}, which is not installed: pip install 'tailrace[{EXTRAS[package]}]'"
    return None
