"""Files by which a bulk load offers finished segments to the running broker, and by which the broker answers.

    orders-0/load-proposal/    the segments, in the partition's own folder, where Apache Kafka ignores folders
    load-proposals             the partitions with segments, and their leader epochs; written last: its existence makes
                               the proposal
    load-proposals.done        the broker's answer, which the load reads and removes

The broker looks only for `load-proposals`, at regular intervals. Refused segments stay where they are, and the load
removes them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from tailrace.log.disk.checkpoints import parse_json
from tailrace.log.disk.files import Files, join, write_atomically
from tailrace.model.ids import LeaderEpoch, Offset, TopicPartition

FOLDER = "load-proposal"
PROPOSALS = "load-proposals"
DONE = f"{PROPOSALS}.done"


class Outcome(NamedTuple):
    """The log end after segments were taken in, or the reason for a refusal."""

    end_offset: Offset | None
    refusal: str | None = None


def propose(files: Files, directory: str, epochs: Mapping[TopicPartition, LeaderEpoch]) -> None:
    _write(files, join(directory, PROPOSALS), [[*partition, epoch] for partition, epoch in epochs.items()])


def proposed(files: Files, directory: str) -> dict[TopicPartition, LeaderEpoch] | None:
    """Return the proposed partitions, or None without a proposal. Raise ValueError if the file cannot be read."""
    path = join(directory, PROPOSALS)
    if not files.exists(path):
        return None
    try:
        return {TopicPartition(str(topic), int(number)): int(epoch) for topic, number, epoch in _read(files, path)}
    except TypeError as error:
        raise ValueError(str(error)) from None


def answer(files: Files, directory: str, outcomes: Mapping[TopicPartition, Outcome]) -> None:
    """Write the answer for the load. This ends the proposal."""
    _write(files, join(directory, DONE), [[*partition, *outcome] for partition, outcome in outcomes.items()])
    files.remove(join(directory, PROPOSALS))
    files.sync_directory(directory)


def answered(files: Files, directory: str) -> dict[TopicPartition, Outcome] | None:
    """Return the broker's answer, or None until the broker has written it and removed the proposal."""
    path = join(directory, DONE)
    if not files.exists(path) or files.exists(join(directory, PROPOSALS)):
        return None
    return {TopicPartition(topic, number): Outcome(end, why) for topic, number, end, why in _read(files, path)}


def _write(files: Files, path: str, rows: list[list[Any]]) -> None:
    write_atomically(files, path, json.dumps(rows).encode())


def _read(files: Files, path: str) -> list[list[Any]]:
    rows = parse_json(files.read(path))
    if not isinstance(rows, list):
        raise ValueError(f"{path} is not a JSON list")
    return rows
