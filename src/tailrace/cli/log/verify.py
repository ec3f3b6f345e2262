"""`tailrace log verify`: check a data directory, print problems and a summary, and return 1 if there are problems."""

from __future__ import annotations

import argparse

from tailrace.cli.log.empty_partitions import fold_empty
from tailrace.cli.log.partition_choice import finding_json, log_files_at, open_directory
from tailrace.cli.output import count_text, json_document, print_lines, size_text, table
from tailrace.cli.terminal.progress_bar import Progress
from tailrace.log.directories.data_directory import DataDirectory
from tailrace.log.disk.files import Files
from tailrace.log.inspect.findings import Finding
from tailrace.log.inspect.verify import PartitionResult, log_bytes, verify_directory, verify_partition


def run(options: argparse.Namespace) -> int:
    files = log_files_at(options)
    directory = open_directory(options, files)
    directory.keep_folders(lambda folder: folder.mark != "deleted")
    results = verify_all(files, directory, deep=options.deep)
    general = verify_directory(directory, results)
    findings = general + [finding for result in results for finding in result.findings]
    if options.json:
        print_lines(json_document(report_document(directory, results, findings)))
    else:
        print_lines(*report_text(directory, results, findings, is_folded=not options.topic))
    return 1 if any(finding.is_problem for finding in findings) else 0


def verify_all(files: Files, directory: DataDirectory, *, deep: bool) -> list[PartitionResult]:
    """Check every partition, with a progress bar."""
    results = []
    with Progress(sum(log_bytes(files, folder) for folder in directory.folders)) as progress:
        for folder in directory.folders:
            progress.label(folder.name)
            results.append(verify_partition(files, folder, deep=deep, advance=progress.advance))
    return results


def report_text(
    directory: DataDirectory, results: list[PartitionResult], findings: list[Finding], *, is_folded: bool
) -> list[str]:
    """Return the report as lines. If `is_folded`, empty partitions of internal topics share one line."""
    listed, folded = results, list[str]()
    if is_folded:
        listed, folded = fold_empty(results, lambda one: one.folder, lambda one: not one.size and not one.findings)
    heads = ["<PARTITION", "SEGMENTS", "SIZE", "BATCHES", "RECORDS", "INDEX ENTRIES", "SNAPSHOTS", "<"]
    rows = [
        [
            result.folder.name,
            len(result.segments),
            size_text(result.size),
            result.batches,
            result.records,
            sum(segment.index_entries for segment in result.segments),
            result.snapshots,
            count_text(len(result.problems), "problem") if result.problems else "ok",
        ]
        for result in listed
    ]
    lines = [directory.path, ""]
    lines += [*table(heads, rows), *folded] if results else ["no partitions"]
    for title, wanted in (("Problems", True), ("Notes", False)):
        chosen = [finding for finding in findings if finding.is_problem is wanted]
        if chosen:
            lines += ["", title, *(f"  {finding}" for finding in chosen)]
    problems = sum(finding.is_problem for finding in findings)
    size = size_text(sum(result.size for result in results))
    verdict = count_text(problems, "problem") if problems else "no problems"
    lines += ["", f"{verdict} in {count_text(len(results), 'partition')}, {size} read"]
    if problems:
        lines.append(f"`tailrace log repair {directory.path}` lists possible repairs")
    return lines


def report_document(
    directory: DataDirectory, results: list[PartitionResult], findings: list[Finding]
) -> dict[str, object]:
    return {
        "directory": directory.path,
        "partitions": [
            {
                "name": result.folder.name,
                "segments": len(result.segments),
                "size": result.size,
                "batches": result.batches,
                "records": result.records,
                "indexEntries": sum(segment.index_entries for segment in result.segments),
                "snapshots": result.snapshots,
                "logEndOffset": result.end_offset,
                "problems": len(result.problems),
            }
            for result in results
        ],
        "problems": [finding_json(finding) for finding in findings if finding.is_problem],
        "notes": [finding_json(finding) for finding in findings if not finding.is_problem],
    }
