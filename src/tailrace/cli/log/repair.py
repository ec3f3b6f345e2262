"""`tailrace log repair`: list the possible repairs, and carry them out with --yes."""

from __future__ import annotations

import argparse
import os

from tailrace.cli.errors import CommandError
from tailrace.cli.log.partition_choice import finding_json, now_ms, open_directory
from tailrace.cli.log.verify import verify_all
from tailrace.cli.output import count_text, json_document, print_lines, size_text
from tailrace.log.directories.data_directory import DataDirectory
from tailrace.log.disk import file_names
from tailrace.log.disk.checkpoints import CorruptCheckpoint
from tailrace.log.disk.files import DiskFiles, File, Files, join
from tailrace.log.disk.overlay_files import Change, OverlayFiles
from tailrace.log.inspect.findings import Finding
from tailrace.log.inspect.repair import RepairPlan, plan_repair, repair_partition
from tailrace.log.inspect.verify import PartitionResult, verify_directory, verify_partition
from tailrace.log.segments.indexes.index_file import CorruptIndex
from tailrace.model.errors import KafkaError
from tailrace.object_stores.store_address import is_remote
from tailrace.records.batch import CorruptBatch


def run(options: argparse.Namespace) -> int:
    if is_remote(options.directory):
        raise CommandError(f"{options.directory} is in an object store, which is read-only: repair a local copy")
    files = DiskFiles()
    directory = open_directory(options, files)
    directory.keep_folders(lambda folder: not folder.mark)
    lock, made_lock = _lock(files, directory, must_lock=options.yes)
    try:
        return _repair(files, directory, options)
    finally:
        if lock is not None:
            lock.close()
            if made_lock:
                files.remove(lock.path)


def _lock(files: DiskFiles, directory: DataDirectory, *, must_lock: bool) -> tuple[File | None, bool]:
    """Lock the directory against brokers. Return the lock, and True if this call created its file.

    A dry run creates no file, and works without write permission.
    """
    path = join(directory.path, file_names.DIRECTORY_LOCK)
    is_there = files.exists(path)
    is_broker_directory = bool(directory.checkpoints) or directory.identity is not None
    if not is_there and not (must_lock and is_broker_directory):
        return None, False
    try:
        return files.lock(path), not is_there
    except BlockingIOError:
        raise CommandError(f"{directory.path} is in use: a broker holds its .lock. Stop the broker first") from None
    except PermissionError:
        if must_lock:
            raise
        return None, False


class _PartitionRepair:
    """The repair of one partition: its problems, the plan, and the changes on disk."""

    def __init__(self, result: PartitionResult, plan: RepairPlan) -> None:
        self.result = result
        self.plan = plan
        self.changes: list[Change] = []
        self.problem: str | None = None  # the reason why the repair failed

    @property
    def is_due(self) -> bool:
        return not self.plan.is_empty and self.problem is None

    def run(self, files: Files) -> None:
        start = self.result.folder.log_start_offset or 0
        if start > self.result.end_offset:
            self.problem = f"the log ends at {self.result.end_offset}, before its log start offset {start}"
            return
        try:
            repair_partition(files, self.plan, log_start_offset=start, now_ms=now_ms())
        except (OSError, KafkaError, CorruptBatch, CorruptCheckpoint, CorruptIndex) as error:
            self.problem = str(error)


def _repair(files: DiskFiles, directory: DataDirectory, options: argparse.Namespace) -> int:
    results = verify_all(files, directory, deep=False)
    jobs = [_PartitionRepair(result, plan_repair(result, cut_damaged=options.cut_damaged)) for result in results]
    for job in jobs:
        if job.is_due:
            rehearsal = OverlayFiles(files)
            job.run(rehearsal)
            job.changes = rehearsal.changes()
    left = [finding for finding in verify_directory(directory, results) if finding.is_problem]
    if options.yes:
        for job in jobs:
            if job.is_due:
                job.run(files)
        # A repair may change checkpoints, so folders are read again.
        folders = {folder.path: folder for folder in open_directory(options, files).folders}
        for job in jobs:
            path = job.result.folder.path
            left += job.plan.left if job.plan.is_empty else verify_partition(files, folders[path]).problems
    else:
        left += [finding for job in jobs for finding in job.plan.left]
    if options.json:
        print_lines(json_document(_document(directory, jobs, left, is_done=options.yes)))
    else:
        print_lines(*_text(directory, jobs, left, is_done=options.yes))
    is_undone = any(job.is_due for job in jobs) and not options.yes
    return 1 if is_undone or left or any(job.problem for job in jobs) else 0


def _text(directory: DataDirectory, jobs: list[_PartitionRepair], left: list[Finding], *, is_done: bool) -> list[str]:
    due = [job for job in jobs if job.is_due]
    lines = [directory.path]
    for job in due:
        lines += ["", job.result.folder.name]
        lines += [f"  {finding}" for finding in job.result.problems if finding not in job.plan.left]
        lines += [f"    {'→' if is_done else '⇢'} {_change_text(change)}" for change in job.changes]
    failed = [job for job in jobs if job.problem is not None]
    if failed:
        lines += ["", "Cannot be repaired", *(f"  {job.result.folder.path}: {job.problem}" for job in failed)]
    if left:
        lines += ["", "Not repaired", *(f"  {finding}" for finding in left)]
        if any(segment.is_damaged for job in jobs for segment in job.result.segments):
            lines.append(
                "  (--cut-damaged cuts a log before its first damaged batch and keeps the rest in a .broken file)"
            )
    lines.append("")
    if not due:
        lines.append("nothing to repair" if not left and not failed else "no problem can be repaired")
    elif is_done:
        lines.append(f"{count_text(len(due), 'partition')} repaired")
    else:
        lines.append(f"{count_text(len(due), 'partition')} can be repaired; nothing was changed. Add --yes to repair")
    return lines


def _change_text(change: Change) -> str:
    name = os.path.basename(change.path)
    if change.what == "cut":
        return f"{name} is cut from {change.size_before} to {change.size} bytes"
    if change.what == "renamed":
        return f"{os.path.basename(change.renamed_from or '?')} becomes {name}"
    if change.what == "removed":
        return f"{name} is removed"
    return f"{name} is {'written' if change.what == 'created' else 'rewritten'}, {size_text(change.size)}"


def _document(
    directory: DataDirectory, jobs: list[_PartitionRepair], left: list[Finding], *, is_done: bool
) -> dict[str, object]:
    return {
        "directory": directory.path,
        "done": is_done,
        "partitions": [
            {
                "name": job.result.folder.name,
                "problems": [finding_json(finding) for finding in job.result.problems],
                "changes": [
                    {
                        "file": change.path,
                        "change": change.what,
                        "sizeBefore": change.size_before,
                        "size": change.size,
                        "renamedFrom": change.renamed_from,
                    }
                    for change in job.changes
                ],
                "error": job.problem,
            }
            for job in jobs
            if not job.plan.is_empty or job.problem
        ],
        "left": [finding_json(finding) for finding in left],
    }
