"""The data directories that a job works on, narrowed to the topics and partitions that were asked for."""

from __future__ import annotations

import os
from collections.abc import Sequence

from tailrace.log.data_directory import DataDirectory, PartitionFolder, look_at
from tailrace.log.files import DiskFiles
from tailrace.log.findings import CannotLook
from tailrace.spark.jobs.errors import JobError


def open_directories(
    path: str | Sequence[str], *, topics: Sequence[str] = (), partitions: Sequence[int] = ()
) -> list[DataDirectory]:
    """The directories, each with the folders that are wanted; JobError if one cannot be looked at, or has none."""
    paths = [path] if isinstance(path, str | os.PathLike) else list(path)
    if not paths:
        raise JobError("no data directory was given")
    directories = [_open(os.fspath(one)) for one in paths]
    for directory in directories:
        directory.folders = [folder for folder in directory.folders if _is_wanted(folder, topics, partitions)]
    if (topics or partitions) and not any(directory.folders for directory in directories):
        of_topics = f" of {' or '.join(topics)}" if topics else ""
        numbers = f" {' or '.join(map(str, partitions))}" if partitions else ""
        raise JobError(f"{' and '.join(map(str, paths))} has no partition{numbers}{of_topics}")
    return directories


def _open(path: str) -> DataDirectory:
    tidy = os.path.normpath(path)
    if os.path.basename(tidy) in ("", ".", ".."):
        tidy = os.path.abspath(tidy)
    try:
        return look_at(DiskFiles(), tidy)
    except CannotLook as error:
        raise JobError(str(error)) from None
    except OSError as error:
        raise JobError(f"{tidy} cannot be read: {error.strerror}") from None


def _is_wanted(folder: PartitionFolder, topics: Sequence[str], partitions: Sequence[int]) -> bool:
    topic, number = folder.partition
    return (not topics or topic in topics) and (not partitions or number in partitions)
