"""A hint for jobs over little data: `tailrace log` does the same on one core, without the start of Spark."""

from __future__ import annotations

import argparse
from shlex import quote
from typing import Final

from tailrace.cli.log.partition_choice import tidy_path
from tailrace.cli.output import size_text, warn
from tailrace.log.directories.data_directory import read_data_directory
from tailrace.log.disk.files import DiskFiles
from tailrace.log.inspect.findings import InspectionFailed
from tailrace.log.inspect.verify import log_bytes
from tailrace.object_stores.store_address import is_remote

SMALL_BYTES: Final = 10 * 1024**3  # docs/explanation/log-or-spark.md has the measurement


def hint_if_small(options: argparse.Namespace, command: str, does: str) -> None:
    """Print a hint if the chosen partitions on this machine's disks are small.

    `command` needs no Spark, and `does` says what it would do: "would check them".
    """
    if not options.master.startswith("local") or any(is_remote(path) for path in options.directory):
        return
    try:
        size = sum(_size(path, options) for path in options.directory)
    except (OSError, InspectionFailed):
        return  # the job itself reports this error
    if size < SMALL_BYTES:
        chosen = [*(f"--topic {name}" for name in options.topic), *(f"--partition {n}" for n in options.partition)]
        commands = [f"`{' '.join([command, quote(path), *chosen])}`" for path in options.directory]
        warn(f"{size_text(size)} of data need no Spark: {' and '.join(commands)} {does}, in less time")


def _size(path: str, options: argparse.Namespace) -> int:
    files = DiskFiles()
    folders = [
        folder
        for folder in read_data_directory(files, tidy_path(path)).folders
        if (not options.topic or folder.partition.topic in options.topic)
        and (not options.partition or folder.partition.partition in options.partition)
    ]
    return sum(log_bytes(files, folder) for folder in folders)
