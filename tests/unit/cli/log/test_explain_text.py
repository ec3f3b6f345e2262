"""The chart of an explained read."""

from __future__ import annotations

from tailrace.cli.log.explain_text import read_text, timestamp_text
from tailrace.log.inspect.explain import explain_offset, explain_timestamp
from tailrace.log.partition_log import PartitionLog
from tailrace.log.watermarks import Isolation
from tests.support.small_logs import NOW_MS, append, open_small, replicate


def small_log(batches: int) -> PartitionLog:
    log = open_small(settings={"index.interval.bytes": "500"})
    for n in range(batches):
        append(log, b"x" * 100, timestamp=NOW_MS + n)
    replicate(log)
    return log


def bar(lines: list[str]) -> str:
    return next(line for line in lines if line.strip() and set(line.strip()) <= set("─▒█"))[2:]


def test_the_chart_shows_slice_and_walk_at_their_positions() -> None:
    log = small_log(64)
    size = log.size // 64
    lines = read_text(explain_offset(log, 34, 10 * size, Isolation.LOG_END))
    assert len(bar(lines)) == 64
    assert bar(lines).index("█") == 34
    assert bar(lines).count("█") == 10
    start = log.segments.active.offset_index.lookup(34).position // size
    assert bar(lines).count("▒") == 34 - start


def test_the_chart_numbers_the_index_probes_at_their_positions() -> None:
    log = small_log(64)
    explained = explain_offset(log, 34, 100, Isolation.LOG_END)
    lines = read_text(explained)
    marks = lines[lines.index(next(line for line in lines if "─" in line)) - 1]
    for number, probe in enumerate(explained.walks[0].search.probes, 1):
        cell = probe.points_to * 64 // log.size
        assert marks[2 + cell] in (str(number), *map(str, range(1, number)))


def test_a_long_walk_is_printed_shortened() -> None:
    log = open_small(settings={"index.interval.bytes": "1000000"})
    for n in range(100):
        append(log, b"x", timestamp=NOW_MS + n)
    replicate(log)
    lines = read_text(explain_offset(log, 99, 100, Isolation.LOG_END))
    assert sum("ends before 99" in line for line in lines) == 11
    assert any(line.strip().startswith("…") for line in lines)
    assert any("has no entries" in line for line in lines)
    lines = timestamp_text(explain_timestamp(log, NOW_MS + 99))
    assert any("records read: found" in line for line in lines)


def test_a_read_of_an_empty_log_is_explained() -> None:
    log = open_small()
    assert any("Nothing" in line for line in read_text(explain_offset(log, 0, 100, Isolation.READ_UNCOMMITTED)))
    lines = timestamp_text(explain_timestamp(log, 2 * NOW_MS))
    assert any("no record is at or after that time" in line for line in lines)
