"""`tailrace job export --to iceberg|delta`: one run, or a follower until SIGTERM."""

from __future__ import annotations

import argparse
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

from tailrace.cli.errors import CommandError
from tailrace.cli.jobs.export_typed import row_form
from tailrace.cli.jobs.job import client_of, spark_for
from tailrace.cli.output import count_text, json_document, print_lines, size_text, table
from tailrace.cli.terminal.columns import can_repaint, cut, terminal_size

if TYPE_CHECKING:
    from tailrace.spark.jobs.place import Place
    from tailrace.spark.tables.follow import Progress
    from tailrace.spark.tables.formats.table import Table
    from tailrace.spark.tables.round_writer import RoundWriter
    from tailrace.spark.tables.table_export import Exported, ExportSettings

_ROUND_BYTES = 2 * 1024**3  # of a follower, and of tasks that hold the records of a bucket in memory
_MERGE_EVERY = 8  # rounds of a follower
_FRESHNESS_S = 60.0
# A day of commits once a minute is 1,440 snapshots. A file that no commit of a Delta table names may be of another
# program, so these have a week, as in Delta itself.
_SNAPSHOT_HOURS = {"iceberg": 24, "delta": 168}
_LATEST_SNAPSHOT_HOURS = 1  # each round of --latest leaves a whole copy of the files that it replaced
_FOLLOW_ONLY = {
    "group": "commits no offsets to a group",
    "keep_snapshots": "removes no snapshots",
    "freshness": "exports once",
    "merge_every": "merges no files",
}


def run_tables(options: argparse.Namespace) -> int:
    from tailrace.spark.jobs.place import Place
    from tailrace.spark.tables.table_export import TableExport, export_once
    from tailrace.spark.tables.topic_source import TopicSource

    for name, why in _FOLLOW_ONLY.items():
        if getattr(options, name) is not None and not options.follow:
            raise CommandError(f"--{name.replace('_', '-')} needs --follow: a single run {why}")
    settings, table, client = _settings(options), _table(options), client_of(options)
    with spark_for(options, "export") as spark:
        place = Place.parse(options.source, client)
        files = None if options.files is None else Place.parse(options.files)
        with TopicSource(place, options.topic, files=files, read_committed=not options.uncommitted) as source:
            export = TableExport(spark, source, table, settings)
            found = _follow(options, export, place) if options.follow else export_once(export)
    _print(options, found)
    return 0


def _table(options: argparse.Namespace) -> Table:
    """Return the table. Its catalog is opened here, because Spark needs many seconds to start."""
    from tailrace.spark.jobs.errors import JobError

    try:
        if options.to == "iceberg":
            from tailrace.spark.tables.formats.iceberg import IcebergTable

            return IcebergTable(options.output, options.catalog, dict(map(_pair, options.catalog_property or [])))
        from tailrace.spark.tables.formats.delta import DeltaTable

        return DeltaTable(options.output, dict(map(_pair, options.storage_option or [])))
    except JobError as error:
        raise CommandError(str(error), status=error.status) from None


def _pair(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals or not key:
        raise CommandError(f"{text!r} is not a setting: write KEY=VALUE")
    return key, value


def _settings(options: argparse.Namespace) -> ExportSettings:
    from tailrace.spark.tables.table_export import ROUND_BYTES, TARGET_BYTES, ExportSettings

    return ExportSettings(
        form=row_form(options),
        rounds=_rounds(options),
        target_bytes=options.target_file_size or TARGET_BYTES,
        compression=options.compression,
        allow_loss=options.allow_loss,
        round_bytes=options.round_size or (_ROUND_BYTES if options.follow or options.latest else ROUND_BYTES),
    )


def _rounds(options: argparse.Namespace) -> RoundWriter:
    from tailrace.spark.jobs.errors import JobError
    from tailrace.spark.tables.latest.latest_rounds import LatestRounds
    from tailrace.spark.tables.round_writer import Append

    if not options.latest:
        if options.buckets is not None:
            raise CommandError("--buckets has no effect without --latest")
        return Append(tuple(name for name in options.partition_by.split(",") if name))
    if options.partition_by:
        raise CommandError("--latest divides the table by its keys, so it cannot be combined with --partition-by")
    if options.key_format is not None:
        raise CommandError("--latest compares the bytes of keys, so it cannot be combined with --key-format")
    if options.merge_every is not None:
        raise CommandError("--latest leaves no small files to merge, so it cannot be combined with --merge-every")
    try:
        return LatestRounds(options.buckets)
    except JobError as error:
        raise CommandError(str(error)) from None


def _follow(options: argparse.Namespace, export: Any, place: Place) -> Exported:
    from tailrace.spark.jobs.spark_session import first_sentence
    from tailrace.spark.source.group_commits import GroupCommits
    from tailrace.spark.tables.follow import Follower, FollowPolicy

    hours = options.keep_snapshots
    if hours is None:
        hours = _LATEST_SNAPSHOT_HOURS if options.latest else _SNAPSHOT_HOURS[options.to]
    policy = FollowPolicy(
        freshness_s=options.freshness or _FRESHNESS_S,
        merge_every=_MERGE_EVERY if options.merge_every is None else options.merge_every,
        keep_snapshots_s=None if hours == 0 else hours * 3600.0,
    )
    with ExitStack() as stack:
        group = None
        if options.group is not None:
            wire = place.wire()
            if wire is None:
                raise CommandError(f"--group needs the address of a cluster, and {options.source} is a directory")
            group = GroupCommits(options.group, wire, table=export.table.name)
            stack.callback(group.close)
        stopped = stack.enter_context(stop_signals())
        line = stack.enter_context(progress_line())
        try:
            return Follower(export, policy, group=group, report=line).run(stopped)
        except Exception as error:
            if not stopped.is_set():
                raise
            raise CommandError(
                f"the export was stopped, and its round was not completed: {first_sentence(error)}; "
                "run the export again: it continues where the table ends"
            ) from None


@contextmanager
def stop_signals() -> Iterator[threading.Event]:
    """Yield an event that SIGTERM and SIGINT set. A second signal has its usual effect."""
    stopped = threading.Event()
    before: dict[int, Any] = {}

    def stop(number: int, frame: object) -> None:
        stopped.set()
        signal.signal(number, before[number])

    for number in (int(signal.SIGTERM), int(signal.SIGINT)):
        before[number] = signal.signal(number, stop)
    try:
        yield stopped
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def progress_line() -> Iterator[Any]:
    """Yield a function that shows progress: as one changing line on a terminal, else as a line for each commit."""
    is_terminal = can_repaint(sys.stderr)
    shown: tuple[int, str | None] = (0, None)

    def show(progress: Progress) -> None:
        nonlocal shown
        state = progress.total.commits, progress.problem
        if not is_terminal and state == shown:
            return
        shown = state
        text = progress_text(progress)
        if is_terminal:
            sys.stderr.write(f"\r\x1b[K{cut(text, terminal_size(sys.stderr).columns - 1)}")
        else:
            sys.stderr.write(f"{text}\n")
        sys.stderr.flush()

    try:
        yield show
    finally:
        if is_terminal:
            sys.stderr.write("\r\x1b[K")


def progress_text(progress: Progress) -> str:
    total, merged = progress.total, progress.merged
    if progress.problem is not None:
        return f"trying again in {progress.retry_s:.0f} s: {progress.problem}"
    parts = [
        count_text(total.records, "record"),
        count_text(total.commits, "commit"),
        f"{count_text(total.files, 'file')} ({size_text(total.bytes_written)})",
        f"lag {progress.lag:,}",
    ]
    if merged.files_before:
        parts.append(f"{merged.files_before:,} files merged into {merged.files_after:,}")
    if total.broken:
        parts.append(f"{total.broken:,} could not be decoded")
    if total.lost:
        parts.append(f"{total.lost:,} lost")
    return ", ".join(parts)


def _print(options: argparse.Namespace, found: Exported) -> None:
    ends = found.ends or {}
    if options.json:
        offsets: dict[str, dict[str, int]] = {}
        for (topic, number), end in sorted(ends.items()):
            offsets.setdefault(topic, {})[str(number)] = end
        document = {
            "table": found.table,
            "records": found.records,
            "files": found.files,
            "bytes": found.bytes_written,
            "commits": found.commits,
            "broken": found.broken,
            "lostOffsets": found.lost,
            "offsets": offsets,
        }
        print_lines(json_document(document))
        return
    rows = [[str(partition), end] for partition, end in sorted(ends.items())]
    if rows:
        print_lines(*table(["<PARTITION", "EXPORTED TO"], rows), "")
    broken = f"; {count_text(found.broken, 'record')} could not be decoded" if found.broken else ""
    lost = f"; {count_text(found.lost, 'offset')} had been deleted before" if found.lost else ""
    print_lines(
        f"{count_text(found.records, 'record')} in {count_text(found.files, 'file')} "
        f"({size_text(found.bytes_written)}) added to {found.table} in {count_text(found.commits, 'commit')}"
        f"{broken}{lost}"
    )
