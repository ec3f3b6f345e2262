"""`tailrace log cat`: print records as text or as JSON lines."""

from __future__ import annotations

import argparse

from tailrace.cli.errors import CommandError
from tailrace.cli.log.partition_choice import log_files_at, now_ms, open_directory, unmarked
from tailrace.cli.output import print_lines, warn
from tailrace.cli.records.record_filter import record_filter
from tailrace.cli.records.record_text import json_record, text_record
from tailrace.log.directories.data_directory import PartitionFolder
from tailrace.log.disk.files import Files
from tailrace.log.inspect.findings import Finding
from tailrace.log.inspect.offline import Unopenable, open_bounds, open_exact
from tailrace.log.inspect.offline_records import FoundRecord, RecordReader, Selection
from tailrace.log.watermarks import Isolation
from tailrace.model.topic_config import LONG_MAX


def run(options: argparse.Namespace) -> int:
    files = log_files_at(options)
    directory = open_directory(options, files)
    folders = unmarked(directory.folders) or directory.folders
    if not folders:
        raise CommandError(f"{directory.path} has no partitions")
    cat = _Cat(options, files, with_partition=options.more or len(folders) > 1)
    for folder in folders:
        if cat.left == 0:
            break
        cat.show(folder)
    return 1 if cat.had_problems else 0


class _Cat:
    """A run of `log cat` over several partitions: its options, remaining record count, and error status."""

    def __init__(self, options: argparse.Namespace, files: Files, *, with_partition: bool) -> None:
        self._files = files
        self.options = options
        self.with_partition = with_partition
        self.left = LONG_MAX if options.max is None else options.max
        self.had_problems = False
        self._matches = record_filter(options)
        self._selection = Selection(
            options.from_offset or 0,
            LONG_MAX if options.to_offset is None else options.to_offset,
            options.from_timestamp,
            options.to_timestamp,
            Isolation(options.isolation),
        )

    def report(self, finding: Finding) -> None:
        warn(str(finding))
        self.had_problems |= finding.is_problem

    def show(self, folder: PartitionFolder) -> None:
        open_it = open_exact if self._selection.isolation is Isolation.READ_COMMITTED else open_bounds
        try:
            offline = open_it(self._files, folder, now_ms())
        except Unopenable as error:
            warn(str(error))
            self.had_problems = True
            return
        for finding in offline.findings:
            self.report(finding)
        for found in RecordReader(offline, self._selection, self.report):
            if self._matches(folder.partition, found.record):
                print_lines(self._line(folder, found))
                self.left -= 1
                if self.left == 0:
                    break
        offline.log.abandon()

    def _line(self, folder: PartitionFolder, found: FoundRecord) -> str:
        options = self.options
        if options.json:
            partition = folder.partition if self.with_partition else None
            return json_record(found, options.encoding, partition=partition, with_more=options.more)
        return text_record(found, options.encoding, folder.partition)
