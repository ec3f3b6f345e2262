"""A file system of a few megabytes, for one process: what `unshare` and a tmpfs give to who may ask for them."""

from __future__ import annotations

import functools
import subprocess
from pathlib import Path

# What was in the folder is copied into the file system that is laid over it.
_MOUNT = """
mkdir -p "$0" && cp -a "$0" "$0.seed" &&
mount -t tmpfs -o size=$1 tmpfs "$0" && cp -a "$0.seed/." "$0" &&
shift && exec "$@"
"""


def on_small_disk(folder: Path, size: str) -> list[str]:
    """A command in front of another, for which a folder is a file system of its own."""
    return ["unshare", "--mount", "sh", "-c", _MOUNT, str(folder), size]


@functools.cache
def why_no_small_disk() -> str | None:
    """Why there is none to be had here."""
    try:
        done = subprocess.run(
            ["unshare", "--mount", "mount", "-t", "tmpfs", "tmpfs", "/tmp"], capture_output=True, text=True, check=False
        )
    except OSError as error:
        return str(error)
    return done.stderr.strip() or None if done.returncode else None
