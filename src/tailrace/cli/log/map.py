"""`tailrace log map`: where the parts of a partition's log are, and what retention and compaction do next."""

from __future__ import annotations

import argparse
from typing import Any

from tailrace.cli.errors import CommandError
from tailrace.cli.jobs.topic_configs_on_disk import topic_configs
from tailrace.cli.log.log_map import LogMap, MappedSegment, map_log
from tailrace.cli.log.partition_choice import files_at, finding_json, now_ms, one_folder, open_directory, warn_of
from tailrace.cli.output import count_text, json_document, print_lines, size_text, table, time_text
from tailrace.log.segments.indexes.index_file import CorruptIndex
from tailrace.model.configs.topic_settings import parse_topic_config
from tailrace.model.topic_config import InvalidConfig, TopicConfig
from tailrace.object_stores.store_address import is_remote
from tailrace.records.batch import CorruptBatch

_DENSITY = " ▁▂▃▄▅▆▇█"


def run(options: argparse.Namespace) -> int:
    files = files_at(options.directory)
    folder = one_folder(open_directory(options, files))
    settings = {} if is_remote(options.directory) else topic_configs([options.directory])
    values = {**settings.get(folder.partition.topic, {}), **dict(_setting(text) for text in options.config)}
    try:
        config = parse_topic_config(values)
        found = map_log(files, folder, config, now_ms())
    except InvalidConfig as error:
        raise CommandError(f"--config: {error}") from None
    except (CorruptBatch, CorruptIndex) as error:
        raise CommandError(f"{folder.path} cannot be mapped: {error}; see `tailrace log verify`", status=1) from None
    if options.json:
        print_lines(json_document(_document(found, config)))
    else:
        warn_of(found.findings)
        print_lines(*_text(found, config))
    return 0


def _setting(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals or not key:
        raise CommandError(f"--config {text!r} is not a setting: write KEY=VALUE")
    return key, value


def _next(segment: MappedSegment) -> str | None:
    if segment.deletion is not None:
        return segment.deletion.value
    return None if segment.deletable_from_ms is None else f"deleted after {time_text(segment.deletable_from_ms)}"


def _text(found: LogMap, config: TopicConfig) -> list[str]:
    lines = [
        f"{found.folder.name}  ·  {', '.join(sorted(config.cleanup_policy)) or 'no cleanup'}"
        f"  ·  start {found.log_start_offset:,} ≤ stable {found.last_stable_offset:,}"
        f" ≤ high watermark {found.high_watermark:,} ≤ end {found.log_end_offset:,}",
        "",
        *table(
            ["SEGMENT", "END", "SIZE", "<INDEX", "ABORTED", "<SNAPSHOT", "<NEXT"],
            [
                (
                    one.base_offset,
                    one.end_offset,
                    size_text(one.size),
                    _bars(one.index_density),
                    one.aborted_transactions or None,
                    "yes" if one.has_snapshot else None,
                    _next(one),
                )
                for one in found.segments
            ],
        ),
    ]
    for open_one in found.open_transactions:
        lines.append(
            f"open transaction from offset {open_one.first_offset:,}: producer {open_one.producer_id},"
            f" last write {time_text(open_one.last_timestamp)}"
        )
    if found.dirty is not None:
        dirty = found.dirty
        lines.append(
            f"compaction: {size_text(dirty.cleanable_bytes)} from offset {dirty.first_dirty_offset:,} to"
            f" {dirty.first_uncleanable_offset:,} can be cleaned, ratio {dirty.cleanable_ratio:.2f}"
            f" ({'due' if dirty.is_due(config.min_cleanable_dirty_ratio) else 'not due'};"
            f" due above {config.min_cleanable_dirty_ratio:.2f})"
        )
    lines.append(f"{count_text(len(found.segments), 'segment')}, {count_text(len(found.epochs), 'leader epoch')}")
    return lines


def _bars(density: list[int]) -> str:
    most = max(density, default=0) or 1
    return "".join(_DENSITY[-(-count * (len(_DENSITY) - 1) // most)] for count in density)


def _document(found: LogMap, config: TopicConfig) -> dict[str, Any]:
    folder = found.folder
    dirty = found.dirty
    return {
        "topic": folder.partition.topic,
        "partition": folder.partition.partition,
        "size": sum(one.size for one in found.segments),
        "logStartOffset": found.log_start_offset,
        "lastStableOffset": found.last_stable_offset,
        "highWatermark": found.high_watermark,
        "logEndOffset": found.log_end_offset,
        "recoveryPoint": folder.recovery_point,
        "cleanedTo": folder.cleaned_to,
        "cleanupPolicy": sorted(config.cleanup_policy),
        "retentionMs": config.retention_ms,
        "retentionBytes": config.retention_bytes,
        "leaderEpochs": [{"epoch": epoch, "startOffset": start} for epoch, start in found.epochs],
        "openTransactions": [
            {
                "producerId": one.producer_id,
                "producerEpoch": one.producer_epoch,
                "firstOffset": one.first_offset,
                "lastTimestamp": one.last_timestamp,
            }
            for one in found.open_transactions
        ],
        "abortedTransactions": [
            {"producerId": one.producer_id, "firstOffset": one.first_offset, "lastOffset": one.last_offset}
            for one in found.aborted_transactions
        ],
        "compaction": dirty
        and {
            "firstDirtyOffset": dirty.first_dirty_offset,
            "firstUncleanableOffset": dirty.first_uncleanable_offset,
            "cleanBytes": dirty.clean_bytes,
            "cleanableBytes": dirty.cleanable_bytes,
            "cleanableRatio": round(dirty.cleanable_ratio, 4),
            "minCleanableRatio": config.min_cleanable_dirty_ratio,
            "isDue": dirty.is_due(config.min_cleanable_dirty_ratio),
        },
        "segments": [_segment_json(one) for one in found.segments],
        "findings": [finding_json(one) for one in found.findings],
    }


def _segment_json(one: MappedSegment) -> dict[str, Any]:
    return {
        "baseOffset": one.base_offset,
        "endOffset": one.end_offset,
        "size": one.size,
        "indexDensity": one.index_density,
        "indexEntries": sum(one.index_density),
        "timeIndexEntries": one.time_index_entries,
        "abortedTransactions": one.aborted_transactions,
        "hasSnapshot": one.has_snapshot,
        "largestTimestamp": one.largest_timestamp,
        "deletion": one.deletion and one.deletion.value,
        "deletableFrom": one.deletable_from_ms,
    }
