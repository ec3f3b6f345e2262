"""An explained read as text: numbered steps, then a chart of the segment.

probes        2       1
index    ·  ·  ·  ·  ·  ·  ·  ·
log      ───────▒▒███████████───
         0                   1.0 MB
"""

from __future__ import annotations

from collections.abc import Sequence

from tailrace.cli.output import count_text, size_text, table, time_text
from tailrace.log.inspect.explain import (
    Cost,
    IndexSearch,
    ReadExplanation,
    SegmentWalk,
    Slice,
    TimestampExplanation,
    WalkedBatch,
)
from tailrace.log.watermarks import Isolation

_WIDTH = 64
_NAME_WIDTH = 16
_SHOWN = 12
_BOUND_NAMES = {
    Isolation.LOG_END: "the log end",
    Isolation.READ_UNCOMMITTED: "the high watermark",
    Isolation.READ_COMMITTED: "the last stable offset",
}


class _Steps:
    """Text of numbered steps. The first line of a step starts with its number and name."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._number = 0

    def add(self, name: str, *lines: str) -> None:
        self._number += 1
        head = f"{self._number:>2}  {name}".ljust(_NAME_WIDTH + 4)
        for line in lines:
            self.lines.append((head + line).rstrip())
            head = " " * len(head)


def read_text(read: ReadExplanation) -> list[str]:
    isolation = read.bounds.isolation.value
    steps = _Steps()
    steps.add("Bounds", *_bounds(read))
    for number, walk in enumerate(read.walks):
        how = (
            f"base offset {walk.base_offset}, the last at or below {read.offset}: "
            f"slot {walk.slot} of {walk.segments}, by binary search in memory"
            if number == 0
            else f"the next one, base offset {walk.base_offset}: the one before has no record from {read.offset} on"
        )
        steps.add("Segment", how, f"{_name(walk.path)}, {size_text(walk.size)}")
        steps.add("Offset index", *_search(walk.search, "offset", "position"))
        steps.add("Walk", *_walk_to_offset(walk, read.offset))
    if read.slice is not None:
        steps.add("Slice", *_slice(read, read.slice))
    if read.aborted is not None and read.empty_because is None:
        steps.add("Aborted", *_aborted(read))
    if read.empty_because is not None:
        steps.add("Nothing", read.empty_because)
    if read.cost is not None and read.walks:
        steps.add("Cost", *_cost(read.cost))
    title = f"Read of {read.partition} from offset {read.offset}, {isolation}, at most {size_text(read.max_bytes)}"
    lines = [title, "", *steps.lines]
    if read.walks:
        lines += ["", *_picture(read.walks[-1], read.slice)]
    return lines


def timestamp_text(lookup: TimestampExplanation) -> list[str]:
    steps = _Steps()
    steps.add("Segment", *_segment_times(lookup))
    if lookup.time_search is not None and lookup.walk is not None:
        steps.add("Time index", *_search(lookup.time_search, "timestamp", "offset"))
        steps.add("Offset index", *_search(lookup.walk.search, "offset", "position"))
        steps.add("Walk", *_walk_to_time(lookup, lookup.walk))
    steps.add("Found", _found_text(lookup))
    if lookup.cost is not None:
        steps.add("Cost", *_cost(lookup.cost))
    title = f"Lookup in {lookup.partition} of {lookup.timestamp}, {time_text(lookup.timestamp)} UTC"
    lines = [title, "", *steps.lines]
    if lookup.walk is not None:
        lines += ["", *_picture(lookup.walk, None)]
    return lines


def _name(path: str) -> str:
    return path.rpartition("/")[2]


def _bounds(read: ReadExplanation) -> list[str]:
    bounds = read.bounds
    order = [
        f"log start {bounds.log_start_offset}",
        f"last stable {bounds.last_stable_offset}",
        f"high watermark {bounds.high_watermark}",
        f"log end {bounds.log_end_offset}",
    ]
    place = f", byte {bounds.bound_position} of segment {bounds.bound_segment}" if bounds.bound_position >= 0 else ""
    if bounds.isolation is not Isolation.READ_COMMITTED:
        del order[1]  # needs the producer state, which is not loaded for this isolation
    name = _BOUND_NAMES[bounds.isolation]
    return [" ≤ ".join(order), f"{bounds.isolation.value} ends before {name}: offset {bounds.bound}{place}"]


def _search(search: IndexSearch, key: str, points_to: str) -> list[str]:
    count = count_text(search.entries, "entry", "entries")
    title = f"{_name(search.path)}: the last of {count} at or below {search.target}"
    if not search.entries:
        return [f"{_name(search.path)} has no entries: the walk starts at the beginning of the segment"]
    rows = [
        [
            n,
            probe.slot,
            probe.key,
            probe.points_to,
            "at or below, go right" if probe.is_at_or_below else "above, go left",
        ]
        for n, probe in enumerate(search.probes, 1)
    ]
    lines = [title, *table(["probe", "slot", key, points_to, "<"], rows, indent="  ")]
    if search.slot < 0:
        return [*lines, "→ all entries are above it: the walk starts at the beginning of the segment"]
    return [*lines, f"→ slot {search.slot}: {key} {search.key}, {points_to} {search.points_to}"]


def _walk_to_offset(walk: SegmentWalk, offset: int) -> list[str]:
    if not walk.walked:
        return [f"no batches from byte {walk.walk_start} on"]
    found = walk.walked[-1]
    lines = _batch_table(walk.walked, f"ends before {offset}", f"reaches {offset}")
    if not found.is_match:
        lines.append(f"→ no batch reaches {offset}: continue in the next segment")
    elif found.base_offset > offset:
        lines.append(f"→ no record has offset {offset}; the next record is in the batch at byte {found.position}")
    else:
        lines.append(f"→ the batch at byte {found.position}")
    return [f"batch headers from byte {walk.walk_start} on", *lines]


def _walk_to_time(lookup: TimestampExplanation, walk: SegmentWalk) -> list[str]:
    wanted = lookup.timestamp
    rows: list[list[object]] = []
    for batch in _shortened(walk.walked):
        if batch is None:
            rows.append(["…", "", "", "", ""])
            continue
        verdict = "header: too early" if batch.max_timestamp < wanted else "records read: none matches"
        if batch.is_match:
            verdict = "records read: found"
        rows.append([batch.position, _offsets(batch), batch.size, time_text(batch.max_timestamp), verdict])
    heads = ["byte", "offsets", "bytes", "largest time", "<"]
    return [f"batches from byte {walk.walk_start} on", *table(heads, rows, indent="  ")]


def _batch_table(walked: Sequence[WalkedBatch], passed: str, matched: str) -> list[str]:
    rows: list[list[object]] = []
    for batch in _shortened(walked):
        if batch is None:
            rows.append(["…", "", "", ""])
        else:
            rows.append([batch.position, _offsets(batch), batch.size, matched if batch.is_match else passed])
    return table(["byte", "offsets", "bytes", "<"], rows, indent="  ")


def _shortened(walked: Sequence[WalkedBatch]) -> list[WalkedBatch | None]:
    """Return all batches of a short walk; of a long one the first and last few, with None between them."""
    if len(walked) <= _SHOWN:
        return list(walked)
    return [*walked[: _SHOWN // 2], None, *walked[-_SHOWN // 2 :]]


def _offsets(batch: WalkedBatch) -> str:
    return f"{batch.base_offset}–{batch.last_offset}"


def _slice(read: ReadExplanation, found: Slice) -> list[str]:
    ends = {
        "bound": f"up to {_BOUND_NAMES[read.bounds.isolation]}",
        "segment": "up to the end of the segment",
        "size": f"up to max bytes, {size_text(read.max_bytes)}",
    }[found.ends_with]
    if found.is_first_batch_incomplete or (found.ends_with == "size" and found.size > read.max_bytes):
        ends = "one whole batch, although it is larger than max bytes"
    lines = [f"{_name(found.path)}, {size_text(found.size)} from byte {found.position} on: {ends}"]
    first = read.walks[-1].walked[-1]
    before = read.offset - first.base_offset
    if before > 0:
        lines.append(
            f"its first batch starts at {first.base_offset}: the reader drops the offsets before {read.offset}"
        )
    return lines


def _aborted(read: ReadExplanation) -> list[str]:
    if not read.aborted:
        return ["no aborted transaction overlaps the slice"]
    rows = [[entry.producer_id, entry.first_offset, entry.last_offset] for entry in read.aborted]
    names = ", ".join(_name(path) for path in read.aborted_indexes)
    lines = [f"from {names}: the reader skips the records of these transactions"]
    return lines + table(["producer", "first offset", "last offset"], rows, indent="  ")


def _cost(cost: Cost) -> list[str]:
    index = f"{count_text(cost.index_probes, 'index probe')} on {count_text(cost.index_pages, 'page')} of 4 KB"
    reads = f"{count_text(cost.reads, 'read')} of the log, {cost.bytes_read:,} bytes"
    lines = [f"{index}; {reads} on {count_text(cost.log_pages, 'page')}"]
    if cost.slice_pages:
        lines.append(
            f"the slice spans {count_text(cost.slice_pages, 'page')} and is sent without copying it to user space"
        )
    return lines


def _segment_times(lookup: TimestampExplanation) -> list[str]:
    rows = [
        [entry.base_offset, time_text(entry.largest_timestamp), "late enough" if entry.is_reached else "too early"]
        for entry in lookup.segments[-_SHOWN:]
    ]
    left_out = len(lookup.segments) - len(rows)
    lines = table(["segment", "largest time", "<"], rows, indent="  ")
    if left_out > 0:
        lines.insert(1, f"  … {count_text(left_out, 'segment')} before are too early")
    return ["the first one whose largest time is at or after the target", *lines]


def _found_text(lookup: TimestampExplanation) -> str:
    found = lookup.found
    if found is None:
        return "no record is at or after that time"
    epoch = "" if found.leader_epoch is None else f", leader epoch {found.leader_epoch}"
    return f"offset {found.offset}, time {found.timestamp} ({time_text(found.timestamp)}){epoch}"


def _picture(walk: SegmentWalk, found: Slice | None) -> list[str]:
    """Draw the segment as a bar with the probed index entries, the walked batches and the slice."""
    size = max(walk.size, 1)

    def cell(position: int) -> int:
        return min(max(position * _WIDTH // size, 0), _WIDTH - 1)  # a damaged index may point outside

    probes = [" "] * _WIDTH
    for number, probe in reversed(list(enumerate(walk.search.probes, 1))):
        probes[cell(probe.points_to)] = str(number) if number < 10 else "+"
    bar = ["─"] * _WIDTH
    if found is not None:
        _fill(bar, cell(found.position), cell(found.position + found.size - 1), "█")
    if walk.walked and walk.walked[-1].position > walk.walk_start:
        # The slice begins with the batch that was searched for. The walk covers the batches before it.
        _fill(bar, cell(walk.walk_start), max(cell(walk.walked[-1].position) - 1, cell(walk.walk_start)), "▒")
    scale = "0".ljust(_WIDTH - len(size_text(walk.size))) + size_text(walk.size)
    legend = "  ".join(["1, 2, … probes", "▒ walk", *(["█ slice"] if found is not None else [])])
    lines = [f"{_name(walk.path)}   {legend}"]
    if walk.search.probes:
        lines.append(f"  {''.join(probes).rstrip()}")
    return [*lines, f"  {''.join(bar)}", f"  {scale}"]


def _fill(bar: list[str], first: int, last: int, mark: str) -> None:
    for n in range(first, last + 1):
        bar[n] = mark
