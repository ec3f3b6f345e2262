"""`tailrace log ls`: partitions and segments as a table or as JSON."""

from __future__ import annotations

import argparse

from tailrace.cli.log.empty_partitions import fold_empty
from tailrace.cli.log.partition_choice import finding_json, log_files_at, now_ms, open_directory
from tailrace.cli.output import count_text, json_document, print_lines, size_text, table, time_text
from tailrace.log.directories.data_directory import DataDirectory
from tailrace.log.inspect.findings import Finding
from tailrace.log.inspect.survey import PartitionFacts, SegmentFacts, survey


def run(options: argparse.Namespace) -> int:
    files = log_files_at(options)
    directory = open_directory(options, files)
    now = now_ms()
    partitions = [survey(files, folder, now) for folder in directory.folders]
    if options.json:
        print_lines(json_document(_document(directory, partitions)))
    else:
        listed, folded = partitions, list[str]()
        if not options.topic and not options.segments:
            listed, folded = fold_empty(partitions, lambda facts: facts.folder, _is_empty)
        print_lines(
            *_text(
                directory,
                partitions,
                segment_table(partitions) if options.segments else [*_partition_table(listed), *folded],
            )
        )
    return 0 if all(facts.is_readable for facts in partitions) else 1


def _is_empty(facts: PartitionFacts) -> bool:
    return facts.is_readable and not facts.size and not facts.log_end_offset and not facts.findings


def _text(directory: DataDirectory, partitions: list[PartitionFacts], listing: list[str]) -> list[str]:
    lines = [_headline(directory)]
    if not partitions:
        return [*lines, "no partitions yet", *_findings(directory.findings)]
    lines.append("")
    lines += listing
    segments = sum(len(facts.segments) for facts in partitions)
    size = sum(facts.size for facts in partitions)
    total = f"{count_text(len(partitions), 'partition')}, {count_text(segments, 'segment')}, {size_text(size)}"
    findings = directory.findings + [finding for facts in partitions for finding in facts.findings]
    return [*lines, "", total, *_findings(findings)]


def _headline(directory: DataDirectory) -> str:
    facts = [directory.path]
    if directory.identity is not None:
        facts.append(f"node {directory.identity.node_id} of cluster {directory.identity.cluster_id}")
    if directory.checkpoints or directory.identity is not None:
        facts.append("stopped cleanly" if directory.is_clean else "in use or not stopped cleanly")
    return "  ·  ".join(facts)


def _partition_table(partitions: list[PartitionFacts]) -> list[str]:
    heads = ["<PARTITION", "SEGMENTS", "SIZE", "START", "END", "HIGH WATERMARK", "EPOCH", "<FROM", "<TO", "<"]
    rows = []
    for facts in partitions:
        rows.append(
            [
                facts.folder.name,
                len(facts.segments) if facts.is_readable else None,
                size_text(facts.size) if facts.is_readable else None,
                facts.log_start_offset if facts.is_readable else None,
                facts.log_end_offset if facts.is_readable else None,
                facts.high_watermark,
                facts.epochs[-1].epoch if facts.epochs else None,
                time_text(facts.first_timestamp),
                time_text(facts.largest_timestamp),
                _remark(facts),
            ]
        )
    return table(heads, rows)


def _remark(facts: PartitionFacts) -> str:
    problems = sum(finding.is_problem for finding in facts.findings)
    words = [facts.folder.mark, "unreadable" if not facts.is_readable else count_text(problems, "problem")]
    return ", ".join(word for word in words if word and word != "0 problems")


def segment_table(partitions: list[PartitionFacts]) -> list[str]:
    heads = ["<PARTITION", "SEGMENT", "END", "SIZE", "INDEX", "TIMEINDEX", "ABORTED", "<SNAPSHOT", "<FROM", "<TO"]
    rows = []
    for facts in partitions:
        for segment in facts.segments:
            rows.append(
                [
                    facts.folder.name,
                    segment.base_offset,
                    segment.end_offset,
                    size_text(segment.size),
                    segment.offset_index_entries,
                    segment.time_index_entries,
                    segment.aborted_transactions or None,
                    "yes" if segment.has_snapshot else None,
                    time_text(segment.first_timestamp),
                    time_text(segment.largest_timestamp),
                ]
            )
    return table(heads, rows)


def _findings(findings: list[Finding]) -> list[str]:
    lines = []
    for title, wanted in (("Problems", True), ("Notes", False)):
        chosen = [finding for finding in findings if finding.is_problem is wanted]
        if chosen:
            lines += ["", title, *(f"  {finding}" for finding in chosen)]
    return lines


def _document(directory: DataDirectory, partitions: list[PartitionFacts]) -> dict[str, object]:
    identity = directory.identity
    return {
        "directory": directory.path,
        "clusterId": identity.cluster_id if identity else None,
        "nodeId": identity.node_id if identity else None,
        "directoryId": identity.directory_id if identity else None,
        "stoppedCleanly": directory.is_clean,
        "findings": [finding_json(finding) for finding in directory.findings],
        "partitions": [_partition_json(facts) for facts in partitions],
    }


def _partition_json(facts: PartitionFacts) -> dict[str, object]:
    folder = facts.folder
    return {
        "name": folder.name,
        "topic": folder.partition.topic,
        "partition": folder.partition.partition,
        "state": folder.mark or ("live" if facts.is_readable else "unreadable"),
        "topicId": str(facts.topic_id) if facts.topic_id else None,
        "size": facts.size,
        "logStartOffset": facts.log_start_offset,
        "logEndOffset": facts.log_end_offset,
        "highWatermark": folder.high_watermark,
        "recoveryPoint": folder.recovery_point,
        "cleanedTo": folder.cleaned_to,
        "firstTimestamp": facts.first_timestamp,
        "largestTimestamp": facts.largest_timestamp,
        "leaderEpochs": [{"epoch": epoch, "startOffset": start} for epoch, start in facts.epochs],
        "segments": [_segment_json(segment) for segment in facts.segments],
        "findings": [finding_json(finding) for finding in facts.findings],
    }


def _segment_json(segment: SegmentFacts) -> dict[str, object]:
    return {
        "baseOffset": segment.base_offset,
        "endOffset": segment.end_offset,
        "size": segment.size,
        "offsetIndexEntries": segment.offset_index_entries,
        "timeIndexEntries": segment.time_index_entries,
        "abortedTransactions": segment.aborted_transactions,
        "hasSnapshot": segment.has_snapshot,
        "firstTimestamp": segment.first_timestamp,
        "largestTimestamp": segment.largest_timestamp,
        "modified": segment.modified_ms,
    }
