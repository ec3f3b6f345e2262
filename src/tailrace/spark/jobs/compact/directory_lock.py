"""The `.lock` of data directories. Its holder may change files; a running broker holds it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from tailrace.log.directories.data_directory import DataDirectory
from tailrace.log.disk import file_names
from tailrace.log.disk.files import DiskFiles, join
from tailrace.spark.jobs.errors import JobError

JOB_LOCK = ".tailrace-job.lock"


@contextmanager
def directory_lock(directory: DataDirectory) -> Iterator[bool]:
    """Hold the lock within a block, so that no broker can start. Yield False, without the lock, if one is running."""
    files = DiskFiles()
    path = join(directory.path, file_names.DIRECTORY_LOCK)
    is_new = not files.exists(path)
    try:
        lock = files.lock(path)
    except BlockingIOError:
        yield False
        return
    try:
        yield True
    finally:
        lock.close()
        if is_new:
            files.remove(path)


@contextmanager
def job_lock(directory: DataDirectory) -> Iterator[None]:
    """Hold the job lock within a block: only one job at a time may write proposals for a directory."""
    files = DiskFiles()
    path = join(directory.path, JOB_LOCK)
    try:
        lock = files.lock(path)
        # The previous holder may have removed the file between our open and our lock.
        is_ours = files.exists(path) and os.fstat(lock.fileno()).st_ino == os.stat(path).st_ino
    except BlockingIOError:
        is_ours = False
    if not is_ours:
        raise JobError(f"another job is writing in {directory.path}; wait until it has ended")
    try:
        yield
    finally:
        files.remove(path)
        lock.close()
