"""LoadProposal: finished segments that a load left for the broker that runs on the directory, and what became of them.

    orders-0/load-proposal/    the segments, in the partition's own folder, where Apache Kafka looks at no folders
    load-proposals             which partitions have some, and of which leader epoch: written last, it is the proposal
    load-proposals.done        the broker's answer, for the load to read and to remove

The broker looks for one file, now and then. What it refuses stays where it is; the load takes it away.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from tailrace.log.disk.files import Files, join, write_atomically
from tailrace.model.ids import LeaderEpoch, Offset, TopicPartition

FOLDER = "load-proposal"
PROPOSALS = "load-proposals"
DONE = f"{PROPOSALS}.done"


class Outcome(NamedTuple):
    """Where a log ends after segments were taken in, or why they were not."""

    end_offset: Offset | None
    refusal: str | None = None


def propose(files: Files, directory: str, epochs: Mapping[TopicPartition, LeaderEpoch]) -> None:
    _write(files, join(directory, PROPOSALS), [[*partition, epoch] for partition, epoch in epochs.items()])


def proposed(files: Files, directory: str) -> dict[TopicPartition, LeaderEpoch] | None:
    """What is proposed; None if nothing is, ValueError if nobody can tell."""
    path = join(directory, PROPOSALS)
    if not files.exists(path):
        return None
    try:
        return {TopicPartition(str(topic), int(number)): int(epoch) for topic, number, epoch in _read(files, path)}
    except TypeError as error:
        raise ValueError(str(error)) from None


def answer(files: Files, directory: str, outcomes: Mapping[TopicPartition, Outcome]) -> None:
    """Tell the load; from here on its proposal is no more."""
    _write(files, join(directory, DONE), [[*partition, *outcome] for partition, outcome in outcomes.items()])
    files.remove(join(directory, PROPOSALS))
    files.sync_directory(directory)


def answered(files: Files, directory: str) -> dict[TopicPartition, Outcome] | None:
    path = join(directory, DONE)
    if not files.exists(path) or files.exists(join(directory, PROPOSALS)):
        return None
    return {TopicPartition(topic, number): Outcome(end, why) for topic, number, end, why in _read(files, path)}


def _write(files: Files, path: str, rows: list[list[Any]]) -> None:
    write_atomically(files, path, json.dumps(rows).encode())


def _read(files: Files, path: str) -> list[list[Any]]:
    rows = json.loads(files.read(path))
    if not isinstance(rows, list):
        raise ValueError(f"{path} is no list")
    return rows
