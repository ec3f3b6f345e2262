"""The lock of a log directory, which keeps other processes out."""

from __future__ import annotations

from tailrace.log.disk.file_names import DIRECTORY_LOCK
from tailrace.log.disk.files import File, Files, join


class DirectoryInUse(Exception):
    """Another process holds the lock of the log directory."""


def lock_directory(files: Files, path: str) -> File:
    """Lock a log directory until the returned file is closed. Create the directory if it is missing."""
    files.make_directory(path)
    try:
        return files.lock(join(path, DIRECTORY_LOCK))
    except (BlockingIOError, PermissionError) as error:
        if isinstance(error, PermissionError) and error.filename:  # the lock file cannot be opened
            raise DirectoryInUse(f"{path} cannot be locked: {error.filename}: {error.strerror}") from None
        raise DirectoryInUse(f"{path} is in use by another process, such as a running broker") from None
