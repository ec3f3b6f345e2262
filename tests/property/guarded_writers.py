"""Hostile input for kernels that write: JSON lines and flat responses. Part of `guarded_kernels.py`."""

from __future__ import annotations

import random
from array import array
from collections.abc import Callable
from typing import Any

from tailrace.protocol.flat.fetch import PartitionAnswer
from tailrace.protocol.flat.produce import ProducedPartition
from tests.fuzz.bytes_mutator import damage
from tests.support.guarded_memory import GuardedMemory

INT64S = (-(2**63), -1, 0, 1, 2**31, 2**62, 2**63 - 1)
INT32S = (-(2**31), -1, 0, 1, 127, 2**31 - 1)
INT16S = (-1, 0, 3, 127, 2**15 - 1)
JSON = (
    b'{"a": 1}',
    b' {"a": "\\u00e9 \xc3\xa9 \xf0\x9f\x98\x80", "b": [1, {"c": null}]}\n',
    b'{"quote": "\\"", "end": "\\\\"}',
    b"{" * 130,
    b'{"open": "\xe2\x82',
    b'{"escape": "\\',
    b"",
    b" \t\r\n",
    b"{}x",
)


def json_lines(pair: Any, dice: random.Random) -> tuple[Any, Any]:
    """Return the lines of random values, from the compiled kernel and from the interpreted one."""
    values = [damage(dice.choice(JSON), dice, dice.randrange(3)) for _ in range(dice.randrange(6))]
    ends = [0]
    for value in values:
        ends.append(ends[-1] + len(value))
    data = b"".join(values)

    def run(module: Any, place: Callable[[bytes], Any]) -> Any:
        places = place(array("i", ends).tobytes()).cast("i")
        out, faults = place(bytes(len(data) + len(values))), place(bytes(len(values)))
        used = module.join_lines(place(data), places, out, faults)
        return used, bytes(out[:used]), bytes(faults)

    def guarded(data: bytes) -> memoryview:
        return GuardedMemory(max(len(data), 1)).view(data)

    return run(pair.compiled, guarded), run(pair.interpreted, lambda data: memoryview(bytearray(data)))


def responses(pair: Any, dice: random.Random) -> tuple[Any, Any]:
    """Return random Produce, Fetch and OffsetCommit responses, from both kernels."""
    names = [dice.choice(("t", "größe", "n" * 300)) for _ in range(dice.randrange(4))]
    counts = [dice.choice((0, 1, 3, 200)) for _ in names]
    ids = [dice.randbytes(16) for _ in names]
    produced = [[_produced(dice) for _ in range(count)] for count in counts]
    fetched = [[_fetched(dice) for _ in range(count)] for count in counts]
    codes = [dice.choice((0, 3, [dice.choice(INT16S) for _ in range(count)])) for count in counts]
    indexes = [[(dice.choice(INT32S), 0, 0, None, 0) for _ in range(count)] for count in counts]
    correlation_id, throttle_ms, session_id = (dice.choice(INT32S) for _ in range(3))
    error = dice.choice(INT16S)

    def run(module: Any, place: Callable[[bytes], bytes]) -> Any:
        found: list[Any] = []
        placed = [place(one) for one in ids]
        for version in (9, 12, 13):
            topics = list(zip(placed if version >= 13 else names, produced, strict=True))
            found.append(module.write_produced(version, correlation_id, throttle_ms, topics))
        for version in (12, 13, 18):
            parts = [
                [one._replace(records=place(one.records)) if isinstance(one.records, bytes) else one for one in some]
                for some in fetched
            ]
            written = module.write_fetched(
                version, correlation_id, throttle_ms, error, session_id, list(zip(names, placed, parts, strict=True))
            )
            found.append(written and [one if isinstance(one, range) else bytes(one) for one in written])
        for version in (8, 10):
            topics = list(zip(placed if version >= 10 else names, indexes, codes, strict=True))
            found.append(module.write_committed(version, correlation_id, throttle_ms, topics))
        return found

    return run(pair.compiled, _guarded_bytes), run(pair.interpreted, bytes)


def _guarded_bytes(data: bytes) -> bytes:
    return GuardedMemory(len(data)).guarded_bytes(data)


def _produced(dice: random.Random) -> ProducedPartition:
    one = ProducedPartition(dice.choice(INT32S))
    one.error = dice.choice(INT16S)
    one.first_offset, one.append_time_ms, one.log_start = (dice.choice(INT64S) for _ in range(3))
    if dice.random() < 0.005:
        one.message = "refused"
    return one


def _fetched(dice: random.Random) -> PartitionAnswer:
    aborted = dice.choice(
        (None, [], [(dice.choice(INT64S), dice.choice(INT64S)) for _ in range(dice.choice((1, 130)))])
    )
    # A range plays a slice of a file: it has a length, and is not bytes.
    records = dice.choice((b"", dice.randbytes(dice.choice((1, 126, 127, 20_000))), range(dice.choice((0, 5, 2**20)))))
    leader = (1, 2) if dice.random() < 0.002 else None
    bounds = (dice.choice(INT64S) for _ in range(3))
    return PartitionAnswer(
        dice.choice(INT32S), dice.choice(INT16S), *bounds, aborted, dice.choice(INT32S), records, None, leader
    )
