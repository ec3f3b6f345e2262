"""The `.lock` of data directories: who holds it may change files, and a broker that runs holds it."""

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
    """Keep brokers out while it is entered; False, and nothing is kept out, where one runs already."""
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
def one_job(directory: DataDirectory) -> Iterator[None]:
    """One job at a time writes proposals for a directory."""
    files = DiskFiles()
    path = join(directory.path, JOB_LOCK)
    try:
        lock = files.lock(path)
        # Whoever had it before may have removed the file between our opening and our locking it.
        is_ours = files.exists(path) and os.fstat(lock.fileno()).st_ino == os.stat(path).st_ino
    except BlockingIOError:
        is_ours = False
    if not is_ours:
        raise JobError(f"another job is writing in {directory.path}")
    try:
        yield
    finally:
        files.remove(path)
        lock.close()
