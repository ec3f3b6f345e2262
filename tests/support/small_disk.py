"""A file system of a few megabytes for one process, made with `unshare` and a tmpfs where the system permits it."""

from __future__ import annotations

import functools
import subprocess
from pathlib import Path

# The content of the folder is copied into the file system that is mounted over it.
_MOUNT = """
mkdir -p "$0" && cp -a "$0" "$0.seed" &&
mount -t tmpfs -o size=$1 tmpfs "$0" && cp -a "$0.seed/." "$0" &&
shift && exec "$@"
"""


def on_small_disk(folder: Path, size: str) -> list[str]:
    """Return a command prefix that runs another command with a small file system mounted on a folder."""
    return ["unshare", "--mount", "sh", "-c", _MOUNT, str(folder), size]


@functools.cache
def why_no_small_disk() -> str | None:
    """Return the reason why this machine cannot make one, or None."""
    try:
        done = subprocess.run(
            ["unshare", "--mount", "mount", "-t", "tmpfs", "tmpfs", "/tmp"], capture_output=True, text=True, check=False
        )
    except OSError as error:
        return str(error)
    return done.stderr.strip() or None if done.returncode else None
