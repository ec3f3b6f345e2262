"""`tailrace offsets of-checkpoint`: the offsets in the checkpoint of a Spark stream, shown, printed or committed."""

from __future__ import annotations

import argparse
from typing import Any

from tailrace.cli.admin.groups import check_without_members, described_or_none
from tailrace.cli.connection.connecting import connected
from tailrace.cli.errors import CommandError
from tailrace.cli.log.partition_choice import files_at, tidy_path
from tailrace.cli.output import json_document, print_lines, table
from tailrace.client.cluster.coordinators import Coordinators
from tailrace.client.groups.group_offsets import OffsetAndMetadata, commit_offsets, committed_offsets
from tailrace.model.ids import Offset, TopicPartition
from tailrace.spark import checkpoint as checkpoints
from tailrace.spark.checkpoint import Checkpoint, WrongCheckpoint, read_checkpoint, starting_offsets_json


def run(options: argparse.Namespace) -> int:
    if options.yes and options.to_group is None:
        raise CommandError("--yes commits the offsets of --to-group NAME; give the name of the group")
    path = tidy_path(options.directory)
    try:
        checkpoint = read_checkpoint(files_at(options.directory), path)
        if options.to_group is None and not options.starting_offsets:
            print_lines(*_shown(checkpoint, options))
            return 0
        offsets = checkpoints.committed_offsets(checkpoint, path, options.source)
    except WrongCheckpoint as error:
        raise CommandError(str(error)) from None
    if options.starting_offsets:
        print_lines(starting_offsets_json(offsets))
        return 0
    return _to_group(offsets, options)


def _shown(checkpoint: Checkpoint, options: argparse.Namespace) -> list[str]:
    sources = [one for one in checkpoint.sources if options.source in (None, one.name)]
    if options.json:
        return [json_document(_document(checkpoint, sources))]
    rows: list[list[object]] = []
    for one in sources:
        committed, planned = one.committed or {}, one.planned or {}
        rows += [
            [one.name, *partition, committed.get(partition), planned.get(partition)]
            for partition in sorted({*committed, *planned})
        ]
    lines = [f"query {checkpoint.query_id}"] if checkpoint.query_id is not None else []
    if checkpoint.committed_batch is None:
        lines.append("no batch is committed")
    else:
        lines.append(f"batch {checkpoint.committed_batch} is committed: the records before COMMITTED are processed")
    if checkpoint.planned_batch is not None:
        lines.append(
            f"batch {checkpoint.planned_batch} is planned, up to PLANNED, and not committed: a restart runs it again"
        )
    for one in sources:
        if not one.committed and not one.planned:
            lines.append(f"source {one.name} is not Kafka, or has no offsets yet")
    if rows:
        lines += ["", *table(["<SOURCE", "<TOPIC", "PARTITION", "COMMITTED", "PLANNED"], rows)]
    return lines


def _document(checkpoint: Checkpoint, sources: list[checkpoints.SourceOffsets]) -> dict[str, Any]:
    return {
        "queryId": checkpoint.query_id,
        "committedBatch": checkpoint.committed_batch,
        "plannedBatch": checkpoint.planned_batch,
        "sources": [
            {
                "source": one.name,
                "partitions": [
                    {
                        **partition._asdict(),
                        "committed": (one.committed or {}).get(partition),
                        "planned": (one.planned or {}).get(partition),
                    }
                    for partition in sorted({*(one.committed or {}), *(one.planned or {})})
                ],
            }
            for one in sources
        ],
    }


def _to_group(offsets: dict[TopicPartition, Offset], options: argparse.Namespace) -> int:
    with connected(options) as cluster:
        coordinators = Coordinators(cluster)
        known = committed_offsets(coordinators, options.to_group)
        for topic in sorted({partition.topic for partition in offsets}):
            there = set(cluster.topic(topic).topic_partitions)
            missing = sorted({one for one in offsets if one.topic == topic} - there)
            if missing:
                raise CommandError(f"the checkpoint has {missing[0]}, which is not in this cluster")
        if options.yes:
            check_without_members(described_or_none(coordinators, options.to_group))
            commits = {partition: OffsetAndMetadata(offset, "") for partition, offset in offsets.items()}
            commit_offsets(coordinators, options.to_group, commits)
    before = {one: known[one].offset if one in known else None for one in offsets}
    if options.json:
        found = [{**one._asdict(), "from": before[one], "to": offsets[one]} for one in sorted(offsets)]
        print_lines(json_document({"group": options.to_group, "executed": options.yes, "offsets": found}))
        return 0
    rows = [(*one, before[one], offsets[one]) for one in sorted(offsets)]
    print_lines(*table(["<TOPIC", "PARTITION", "FROM", "TO"], rows))
    if not options.yes:
        print_lines("dry run: nothing was changed; add --yes to commit the offsets")
    return 0
