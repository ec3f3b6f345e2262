"""The JSON file of a reassignment, in the format of kafka-reassign-partitions.

{"version": 1, "partitions": [{"topic": "orders", "partition": 0, "replicas": [1, 2, 3]}]}
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from tailrace.cli.errors import CommandError
from tailrace.model.ids import BrokerId, TopicPartition

VERSION: Final = 1
_BYTES_MAX: Final = 67_108_864


def assignment_text(assignment: Mapping[TopicPartition, Sequence[BrokerId]]) -> str:
    """Return the JSON text of an assignment, with one line per partition."""
    lines = [
        "  " + json.dumps({"topic": one.topic, "partition": one.partition, "replicas": list(replicas)})
        for one, replicas in assignment.items()
    ]
    return f'{{"version": {VERSION}, "partitions": [\n' + ",\n".join(lines) + "\n]}"


def read_assignment(path: str) -> dict[TopicPartition, list[BrokerId]]:
    """Return the assignment in a file, or in standard input if the path is -. Raise CommandError if it is malformed."""
    if path == "-":
        data = sys.stdin.buffer.read(_BYTES_MAX + 1)
    else:
        with Path(path).open("rb") as file:
            data = file.read(_BYTES_MAX + 1)
    if len(data) > _BYTES_MAX:
        raise CommandError(f"{path} is larger than {_BYTES_MAX:,} bytes: it is not a plan")
    try:
        document = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise CommandError(f"{path} is not JSON: {error}") from None
    if not isinstance(document, dict) or document.get("version") != VERSION:
        raise CommandError(f'{path} is not a plan: it must be an object with "version": {VERSION}')
    partitions = document.get("partitions")
    if not isinstance(partitions, list) or not partitions:
        raise CommandError(
            f'{path} has no partitions: write "partitions": [{{"topic": …, "partition": …, "replicas": …}}]'
        )
    found: dict[TopicPartition, list[BrokerId]] = {}
    for entry in partitions:
        partition, replicas = _entry(entry, path)
        if partition in found:
            raise CommandError(f"{path} lists {partition} twice")
        found[partition] = replicas
    return found


def _entry(entry: Any, path: str) -> tuple[TopicPartition, list[BrokerId]]:
    fields: dict[str, Any] = entry if isinstance(entry, dict) else {}
    topic: Any = fields.get("topic")
    number: Any = fields.get("partition")
    replicas: Any = fields.get("replicas")
    is_partition = isinstance(topic, str) and isinstance(number, int) and _is_id(number)
    is_list = isinstance(replicas, list) and replicas and all(_is_id(node) for node in replicas)
    if not is_partition or not is_list or len(set(replicas)) < len(replicas):
        raise CommandError(
            f"{path} has the invalid entry {json.dumps(entry)[:200]}: write "
            '{"topic": "orders", "partition": 0, "replicas": [1, 2]}'
        )
    return TopicPartition(topic, number), replicas


def _is_id(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**31
