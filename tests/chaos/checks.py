"""Checks of the logs at the end of a chaos trial, against the responses that clients got.

Each check yields one sentence for each violation. A log is a list of (offset, value), as a consumer reads it from the
start.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise

from tests.chaos.producers import NOT_ACKNOWLEDGED, record_value
from tests.chaos.transactions import PER_PARTITION
from tests.chaos.watchers import Seen

Log = Sequence[tuple[int, bytes]]
SHOWN = 5


def check_offsets(where: str, log: Log) -> Iterator[str]:
    for (before, _), (offset, _) in pairwise(log):
        if offset <= before:
            yield f"{where}: offset {offset} after {before}"


def check_idempotent(where: str, log: Log, name: str, acknowledged: Sequence[int]) -> Iterator[str]:
    """Check that each record of a producer is in the log once, in sending order, and at its acknowledged offset.

    `acknowledged`: the offset of each record, by the record's number.
    """
    mark = name.encode() + b" "
    mine = [(offset, int(value.split(b" ")[1]), value) for offset, value in log if value.startswith(mark)]
    at = {offset: number for offset, number, _ in mine}
    lost = [
        (number, offset)
        for number, offset in enumerate(acknowledged)
        if offset != NOT_ACKNOWLEDGED and at.get(offset) != number
    ]
    if lost:
        yield f"{where}: {len(lost)} acknowledged records of {name} are not at their offsets: {_some(lost)}"
    if len({number for _, number, _ in mine}) != len(mine):
        counts: dict[int, list[int]] = {}
        for offset, number, _ in mine:
            counts.setdefault(number, []).append(offset)
        twice = {number: offsets for number, offsets in counts.items() if len(offsets) > 1}
        yield f"{where}: {len(twice)} records of {name} are in the log more than once: {_some(twice.items())}"
    unordered = [(offset, number) for (_, before, _), (offset, number, _) in pairwise(mine) if number < before]
    if unordered:
        yield f"{where}: records of {name} are out of order: {_some(unordered)}"
    changed = [offset for offset, number, value in mine if value != record_value(name, number)]
    if changed:
        yield f"{where}: records of {name} differ from the sent records: {_some(changed)}"


def check_transactions(
    where: str,
    partition: int,
    log: Log,
    name: str,
    committed: Mapping[int, list[int]],
    aborted: Mapping[int, list[int]],
) -> Iterator[str]:
    """Check the read_committed view of one transactional id.

    Every committed transaction is complete, and no aborted transaction is visible.
    """
    mark = name.encode() + b" "
    numbers = [int(value.split(b" ")[1]) for _, value in log if value.startswith(mark)]
    expected = {number for number, chosen in committed.items() if partition in chosen}
    seen = set(numbers)
    if expected - seen:
        yield f"{where}: committed transactions of {name} are missing: {_some(sorted(expected - seen))}"
    if seen & set(aborted):
        yield f"{where}: aborted transactions of {name} are visible: {_some(sorted(seen & set(aborted)))}"
    if numbers != sorted(numbers):
        yield f"{where}: transactions of {name} are out of order"
    counts = {number: numbers.count(number) for number in seen} if len(numbers) != PER_PARTITION * len(seen) else {}
    odd = {number: count for number, count in counts.items() if count != PER_PARTITION}
    if odd:
        yield f"{where}: transactions of {name} are incomplete or duplicated: {_some(odd.items())}"


def check_atomic(name: str, unknown: Mapping[int, list[int]], seen: Mapping[int, set[int]]) -> Iterator[str]:
    """Check that a transaction with an unknown outcome is in all of its partitions or in none.

    `seen`: the transaction numbers in each partition.
    """
    for number, chosen in unknown.items():
        there = [partition for partition in chosen if number in seen[partition]]
        if there and there != chosen:
            yield f"transaction {number} of {name} is visible in {there} only, of {chosen}"


def check_transformed(where: str, source: Log, target: Log) -> Iterator[str]:
    """Check that each input record was transformed exactly once, in order."""
    wanted = [value for _, value in source]
    got = [value for _, value in target]
    if wanted == got:
        return
    first = next((place for place, (a, b) in enumerate(zip(wanted, got, strict=False)) if a != b), len(got))
    at = target[first][0] if first < len(target) else "its end"
    yield (
        f"{where}: {len(got)} of {len(wanted)} inputs, the first difference at number {first} (offset {at}): "
        f"{_some(got[first : first + 3])} where {_some(wanted[first : first + 3])} is due"
    )


def check_seen(where: str, log: Log, seen: Seen) -> Iterator[str]:
    """Check that a reader saw the records that are in the log now, without gaps up to its position, and no others."""
    now = {offset: hash(value) for offset, value in log}
    gone = [offset for offset in seen.offsets if offset not in now]
    if gone:
        yield f"{where}: a reader saw records that are no longer in the log: {_some(gone)}"
    changed = [
        offset
        for offset, fingerprint in zip(seen.offsets, seen.fingerprints, strict=True)
        if now.get(offset, fingerprint) != fingerprint
    ]
    if changed:
        yield f"{where}: records differ from what a reader saw at their offsets: {_some(changed)}"
    if seen.offsets:
        passed = set(seen.offsets)
        skipped = [offset for offset in now if offset <= seen.offsets[-1] and offset not in passed]
        if skipped:
            yield f"{where}: a reader missed offsets {_some(skipped)}"


def _some(things: Iterable[object]) -> str:
    listed = list(things)
    more = f" and {len(listed) - SHOWN} more" if len(listed) > SHOWN else ""
    return ", ".join(str(one) for one in listed[:SHOWN]) + more
