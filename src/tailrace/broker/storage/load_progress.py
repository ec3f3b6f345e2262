"""Log lines about opening directories: progress, recovered logs, and a summary."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

from tailrace.log.directories.log_directory import LoadReport, LogDirectory
from tailrace.model.ids import TopicPartition
from tailrace.model.log_fields import fields

PROGRESS_LOGS: Final = 500  # number of loaded logs between two lines
_log = logging.getLogger(__name__)


def progress_of(directory: LogDirectory) -> Callable[[int, int, TopicPartition], None]:
    """Return the progress callback for `LogDirectory.load`."""

    def log_progress(number: int, total: int, partition: TopicPartition) -> None:
        if number and number % PROGRESS_LOGS == 0:
            _log.info("opening logs", extra=fields(log_dir=directory.path, opened=number, total=total, at=partition))

    return log_progress


def log_loaded(directory: LogDirectory, report: LoadReport) -> None:
    for partition, found in report.recoveries.items():
        _log.info(
            "log recovered",
            extra=fields(
                partition=partition,
                scanned_segments=found.segments_scanned,
                scanned_bytes=found.bytes_scanned,
                cut_bytes=found.bytes_cut,
                indexes_rebuilt=len(found.indexes_rebuilt),
                set_aside=found.broken or None,
            ),
        )
    _log.info(
        "directory opened",
        extra=fields(
            log_dir=directory.path,
            logs=len(directory.logs),
            clean=report.was_clean,
            recovered=len(report.recoveries),
            failed=len(report.failed),
        ),
    )
