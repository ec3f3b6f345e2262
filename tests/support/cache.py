"""Cache for things that tests download or build once. One process makes an entry; other processes see it complete or
not at all.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

FETCH_TIMEOUT_S = 600


class Unavailable(Exception):
    """A tool or package that a test needs is missing here; the message names it."""


def make_once(target: Path, make: Callable[[Path], None], *, directory: bool = True) -> Path:
    """Let `make` build the target in a temporary place and move it, in one process at a time."""
    if target.exists():
        return target
    cache = target.parent
    try:
        cache.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Unavailable(f"the cache directory {cache} cannot be made: {error}") from error
    with _locked(cache / "lock"):
        if not target.exists():
            with tempfile.TemporaryDirectory(dir=cache, prefix="making-") as scratch:
                made = Path(scratch) / target.name
                if directory:
                    made.mkdir()
                make(made)
                made.rename(target)
    return target


def run_to_fetch(what: str, *command: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run a command that downloads or builds something. Raise Unavailable if the command is missing, fails or times
    out.
    """
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=FETCH_TIMEOUT_S, cwd=cwd)
    except FileNotFoundError:
        raise Unavailable(f"{command[0]} is needed for {what}") from None
    except subprocess.TimeoutExpired:
        raise Unavailable(f"{command[0]} did not deliver {what} within {FETCH_TIMEOUT_S} s") from None
    if done.returncode:
        raise Unavailable(f"{command[0]} could not deliver {what}: {first_complaint(done)}")
    return done


def first_complaint(done: subprocess.CompletedProcess[str]) -> str:
    """Return the line that names the cause. Maven's last lines only say where to read about it."""
    text = (done.stdout + done.stderr).strip().splitlines()
    return next((line for line in text if "ERR" in line.upper()), text[-1] if text else "it printed nothing")


def digest(*parts: bytes) -> str:
    found = hashlib.sha256()
    for part in parts:
        found.update(len(part).to_bytes(8, "big") + part)
    return found.hexdigest()[:12]


def digest_of_files(files: Sequence[Path]) -> str:
    return digest(*(file.read_bytes() for file in files))


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
