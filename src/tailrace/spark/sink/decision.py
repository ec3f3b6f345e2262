"""Decision: the transactions of a micro-batch that are to be committed.

A decision is stored as the metadata of a group's committed offset, in a transaction of its own. Metadata has room for
4096 characters. A longer decision is compressed and split over several groups, all in the same transaction.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from tailrace.client.producing.transactions import Transaction

NOTE_MAX: Final = 4_000
_PACKED: Final = "zlib "


@dataclass(frozen=True, slots=True)
class TaskOutput:
    """The work of one task: its transaction, the number of rows, and a digest of the rows that ignores their order."""

    task: int
    attempt: int
    producer_id: int
    epoch: int
    rows: int
    digest: int

    def transaction(self, transactional_id: str) -> Transaction:
        return Transaction(task_id(transactional_id, self.task, self.attempt), self.producer_id, self.epoch)


def task_id(transactional_id: str, task: int, attempt: int) -> str:
    """Return the transactional id of one attempt of a task, so that parallel attempts do not fence each other."""
    return f"{transactional_id}-{task}-{attempt}"


@dataclass(frozen=True, slots=True)
class Decision:
    number: int  # the number of the decision; the largest is the latest
    query: str
    batch: int
    topic: str  # a topic of the batch: the decision is an offset of its partition 0
    outputs: tuple[TaskOutput, ...]
    time_ms: int | None = None  # when it was made; None if an earlier version made it


def to_notes(decision: Decision) -> list[str]:
    tasks = [[one.task, one.attempt, one.producer_id, one.epoch, one.rows, one.digest] for one in decision.outputs]
    fields: dict[str, Any] = {"decision": decision.number, "query": decision.query, "batch": decision.batch}
    fields |= {"topic": decision.topic, "tasks": tasks}
    if decision.time_ms is not None:
        fields["at"] = decision.time_ms
    text = json.dumps(fields, separators=(",", ":"))
    if len(text) > NOTE_MAX:
        text = _PACKED + base64.b64encode(zlib.compress(text.encode(), 9)).decode()
    pieces = [text[start : start + NOTE_MAX] for start in range(0, len(text), NOTE_MAX)]
    return [f"{len(pieces)} {piece}" for piece in pieces]


def piece_count(first_note: str) -> int:
    return int(first_note.split(" ", 1)[0])


def from_notes(notes: Sequence[str]) -> Decision:
    """Parse a decision. Raise ValueError if the notes are not a decision."""
    text = "".join(note.split(" ", 1)[1] for note in notes)
    if text.startswith(_PACKED):
        text = zlib.decompress(base64.b64decode(text.removeprefix(_PACKED))).decode()
    fields = json.loads(text)
    outputs = tuple(TaskOutput(*map(int, one)) for one in fields["tasks"])
    number, batch = int(fields["decision"]), int(fields["batch"])
    return Decision(number, str(fields["query"]), batch, str(fields["topic"]), outputs, fields.get("at"))
