"""Finds the partitions that a `log` command is to read, and prints findings."""

from __future__ import annotations

import argparse
import logging
import os
import time
from collections.abc import Iterable

from tailrace.cli.errors import CommandError
from tailrace.cli.output import warn
from tailrace.log.directories.data_directory import DataDirectory, PartitionFolder, read_data_directory
from tailrace.log.disk.files import DiskFiles, Files
from tailrace.log.inspect.findings import Finding
from tailrace.model.ids import TopicPartition
from tailrace.object_stores.store_address import Place, WrongAddress, is_remote, parse_place
from tailrace.tiers.stores.view.opening import open_view
from tailrace.tiers.stores.view.tier_listing import looks_like_tier

# The log's own warnings describe what a broker does about a problem. These commands report findings instead.
logging.getLogger("tailrace").addHandler(logging.NullHandler())


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def tidy_path(path: str) -> str:
    """Return the path so that its last part is a name: without a trailing slash, `.` or `..`."""
    if is_remote(path):
        return _place(path).path
    path = path.removeprefix("file://")
    tidy = os.path.normpath(path)
    return os.path.abspath(tidy) if os.path.basename(tidy) in ("", ".", "..") else tidy


def _place(path: str) -> Place:
    try:
        return parse_place(path)
    except WrongAddress as error:
        raise CommandError(f"{path} is not the address of a directory: {error}") from None


def files_at(path: str) -> Files:
    """Return the file access for a path on disk or an address in an object store."""
    if not is_remote(path):
        return DiskFiles()
    from tailrace.object_stores.opening import files_of

    return files_of(_place(path))


def log_files_at(options: argparse.Namespace) -> Files:
    """Return the file access for a directory. Remote segments are shown as a data directory."""
    files, path = files_at(options.directory), tidy_path(options.directory)
    if not looks_like_tier(files, path):
        return files
    view = open_view(files, path, is_wanted=lambda partition: _is_wanted(partition, options))
    for problem in view.problems:
        warn(problem)
    return view.files


def open_directory(options: argparse.Namespace, files: Files | None = None) -> DataDirectory:
    """Return the directory with the folders that match --topic and --partition."""
    path = tidy_path(options.directory)
    if os.path.isfile(path):
        raise CommandError(
            f"{path} is a file: give a data directory or the folder of one partition (or use `log dump`)"
        )
    directory = read_data_directory(files or files_at(options.directory), path)
    asked = bool(options.topic or options.partition)
    directory.keep_folders(lambda folder: _is_wanted(folder.partition, options))
    if asked and not directory.folders:
        topics = f" of {' or '.join(options.topic)}" if options.topic else ""
        numbers = f" {' or '.join(map(str, options.partition))}" if options.partition else ""
        raise CommandError(f"{path} has no partition{numbers}{topics}")
    return directory


def _is_wanted(partition: TopicPartition, options: argparse.Namespace) -> bool:
    topic, number = partition
    return (not options.topic or topic in options.topic) and (not options.partition or number in options.partition)


def unmarked(folders: Iterable[PartitionFolder]) -> list[PartitionFolder]:
    """Return the folders that are not marked for deletion."""
    return [folder for folder in folders if not folder.mark]


def one_folder(directory: DataDirectory) -> PartitionFolder:
    folders = unmarked(directory.folders) or directory.folders
    if len(folders) == 1:
        return folders[0]
    if not folders:
        raise CommandError(f"{directory.path} has no partitions")
    some = ", ".join(folder.name for folder in folders[:3]) + (", …" if len(folders) > 3 else "")
    raise CommandError(f"{len(folders)} partitions match ({some}): name one with --topic and --partition")


def finding_json(finding: Finding) -> dict[str, object]:
    return {
        "severity": finding.severity.value,
        "file": finding.path,
        "position": finding.position,
        "message": finding.message,
    }


def warn_of(findings: Iterable[Finding]) -> bool:
    """Print the problems to standard error. Return True if there are any."""
    problems = [finding for finding in findings if finding.is_problem]
    for problem in problems:
        warn(str(problem))
    return bool(problems)
