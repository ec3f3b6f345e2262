"""The data directories of a job, limited to the requested topics and partitions.

Jobs that only read accept directories in an object store as well.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from tailrace.log.directories.data_directory import DataDirectory, PartitionFolder, read_data_directory
from tailrace.log.disk.files import Files
from tailrace.log.inspect.findings import InspectionFailed
from tailrace.object_stores.opening import files_of
from tailrace.object_stores.store_address import WrongAddress, is_remote, parse_place
from tailrace.spark.jobs.errors import JobError


def open_directories(
    path: str | Sequence[str], *, topics: Sequence[str] = (), partitions: Sequence[int] = ()
) -> list[DataDirectory]:
    """Open directories for a job that changes them."""
    for one in _paths(path):
        if is_remote(one):
            raise JobError(
                f"{one} is in an object store, which is read-only; this job writes into the directory: use a local copy"
            )
    return [directory for _, directory in open_readable(path, topics=topics, partitions=partitions)]


def open_readable(
    path: str | Sequence[str], *, topics: Sequence[str] = (), partitions: Sequence[int] = ()
) -> list[tuple[Files, DataDirectory]]:
    """Open directories with the requested folders. Raise JobError if one cannot be read, or no folder matches."""
    paths = _paths(path)
    if not paths:
        raise JobError("no data directory was given")
    opened = [_open(one) for one in paths]
    directories = [directory for _, directory in opened]
    for directory in directories:
        directory.keep_folders(lambda folder: _is_wanted(folder, topics, partitions))
    if (topics or partitions) and not any(directory.folders for directory in directories):
        of_topics = f" of {' or '.join(topics)}" if topics else ""
        numbers = f" {' or '.join(map(str, partitions))}" if partitions else ""
        raise JobError(f"{' and '.join(map(str, paths))} has no partition{numbers}{of_topics}")
    return opened


def _paths(path: str | Sequence[str]) -> list[str]:
    return [os.fspath(one) for one in ([path] if isinstance(path, str | os.PathLike) else path)]


def _open(path: str) -> tuple[Files, DataDirectory]:
    try:
        place = parse_place(path)
    except WrongAddress as error:
        raise JobError(f"{path} is neither a directory nor the address of one: {error}") from None
    tidy = place.path
    if place.settings is None:
        tidy = os.path.normpath(tidy)
        if os.path.basename(tidy) in ("", ".", ".."):
            tidy = os.path.abspath(tidy)
    files = files_of(place)
    try:
        return files, read_data_directory(files, tidy)
    except InspectionFailed as error:
        raise JobError(str(error)) from None
    except OSError as error:
        raise JobError(f"{tidy} cannot be read: {error.strerror}") from None


def _is_wanted(folder: PartitionFolder, topics: Sequence[str], partitions: Sequence[int]) -> bool:
    topic, number = folder.partition
    return (not topics or topic in topics) and (not partitions or number in partitions)
