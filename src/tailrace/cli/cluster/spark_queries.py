"""`tailrace cluster queries`: Spark queries that read and write the topics of a cluster, and exports to tables.

Readers are found by the note in the offsets that they commit to a group, and writers by the decisions of the exactly
once sink, which are committed offsets as well. So the command needs nothing from Spark itself.
"""

from __future__ import annotations

import argparse
import time
from typing import Any, NamedTuple

from tailrace.cli.admin.group_lag import PartitionLag, read_group
from tailrace.cli.connection.connecting import connected
from tailrace.cli.output import json_document, print_lines, table, time_text
from tailrace.client.cluster.coordinators import Coordinators
from tailrace.client.groups.group_offsets import committed_offsets
from tailrace.client.groups.groups import list_groups
from tailrace.spark.sink.decision import Decision
from tailrace.spark.sink.ledger import FINISHED, Ledger
from tailrace.spark.source.group_commits import ReaderNote, parse_note

_TIMEOUT_MS = 60_000  # for new transactions, of which the command makes none


class Reader(NamedTuple):
    group: str
    note: ReaderNote
    partitions: list[PartitionLag]

    @property
    def topics(self) -> list[str]:
        return sorted({one.partition.topic for one in self.partitions})

    @property
    def lag(self) -> int:
        return sum(one.lag or 0 for one in self.partitions)

    def lag_s(self, now_ms: int) -> float | None:
        return max((age for one in self.partitions if (age := one.lag_s(now_ms)) is not None), default=None)


class Writer(NamedTuple):
    transactional_id: str
    decision: Decision
    is_finished: bool

    @property
    def rows(self) -> int:
        return sum(output.rows for output in self.decision.outputs)


def run(options: argparse.Namespace) -> int:
    readers: list[Reader] = []
    writers: list[Writer] = []
    with connected(options) as cluster:
        coordinators = Coordinators(cluster)
        names = {one.group_id for one in list_groups(cluster) if one.type in ("", "classic", "consumer")}
        for name in sorted(names):
            if f"{name}-{FINISHED}" in names:
                ledger = Ledger(coordinators, name, _TIMEOUT_MS)
                decision = _decision(ledger)
                if decision is not None:
                    writers.append(Writer(name, decision, ledger.finished_number() >= decision.number))
                continue
            notes = [parse_note(one.metadata) for one in committed_offsets(coordinators, name).values()]
            latest = max((note for note in notes if note), key=lambda note: note.time_ms, default=None)
            if latest is not None:
                readers.append(Reader(name, latest, read_group(cluster, name, with_times=True)[1]))
    now_ms = int(time.time() * 1_000)
    if options.json:
        print_lines(json_document(_document(readers, writers, now_ms)))
    else:
        print_lines(*_text(readers, writers, now_ms))
    return 0


def _decision(ledger: Ledger) -> Decision | None:
    try:
        return ledger.last_decision()
    except (ValueError, KeyError):
        return None  # a group with such a name, but not a ledger


def _document(readers: list[Reader], writers: list[Writer], now_ms: int) -> dict[str, Any]:
    return {
        "reads": [
            {
                "group": one.group,
                "kind": "table" if one.note.table else "stream",
                "table": one.note.table,
                "topics": one.topics,
                "lag": one.lag,
                "lagSeconds": one.lag_s(now_ms),
                "batch": one.note.batch,
                "batchOffsets": one.note.offsets,
                "committedAt": one.note.time_ms,
            }
            for one in readers
        ],
        "writes": [
            {
                "transactionalId": one.transactional_id,
                "query": one.decision.query,
                "batch": one.decision.batch,
                "topic": one.decision.topic,
                "rows": one.rows,
                "tasks": len(one.decision.outputs),
                "committedAt": one.decision.time_ms,
                "finished": one.is_finished,
            }
            for one in writers
        ],
    }


def _text(readers: list[Reader], writers: list[Writer], now_ms: int) -> list[str]:
    lines = []
    if readers:
        heads = ["<READS AS", "<KIND", "<TOPICS", "BATCH", "OFFSETS", "LAG", "SECONDS", "<LAST COMMIT"]
        rows = [
            (
                one.group,
                f"table {one.note.table}" if one.note.table else "stream",
                ", ".join(one.topics),
                one.note.batch,
                one.note.offsets,
                one.lag,
                one.lag_s(now_ms),
                time_text(one.note.time_ms),
            )
            for one in readers
        ]
        lines += table(heads, rows)
    if writers:
        heads = ["<WRITES AS", "<TOPIC", "BATCH", "ROWS", "TASKS", "<LAST COMMIT", "<STATE"]
        cells = [
            (
                one.transactional_id,
                one.decision.topic,
                one.decision.batch,
                one.rows,
                len(one.decision.outputs),
                None if one.decision.time_ms is None else time_text(one.decision.time_ms),
                "finished" if one.is_finished else "being committed",
            )
            for one in writers
        ]
        lines += [*([""] if lines else []), *table(heads, cells)]
    return lines or ["no Spark query has committed to a group or through the sink"]
