"""Writes a profile as one HTML file with charts, and as JSON."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from html import escape

from tailrace.spark.jobs.errors import JobError
from tailrace.spark.jobs.profile.facts import SizeHistogram
from tailrace.spark.jobs.profile.plots import area, bars
from tailrace.spark.jobs.profile.profile import ProfileReport, TopicProfile, key_text

_STYLE = (
    "body{font-family:sans-serif;margin:2em;max-width:60em}table{border-collapse:collapse}"
    "td,th{padding:.2em .8em;text-align:right;border-bottom:1px solid #ddd}"
    "th:first-child,td:first-child{text-align:left}"
)
_MOST_BARS = 40
_UNITS = ("B", "KB", "MB", "GB", "TB", "PB")


def write_page(report: ProfileReport, folder: str) -> list[str]:
    """Write profile.html and profile.json to a folder, which is created if needed. Return their paths."""
    texts = {
        "profile.html": page(report),
        "profile.json": json.dumps(report.to_json(), indent=2, ensure_ascii=False) + "\n",
    }
    written = []
    try:
        os.makedirs(folder, exist_ok=True)
        for name, text in texts.items():
            written.append(os.path.join(folder, name))
            with open(written[-1], "w", encoding="utf-8") as file:
                file.write(text)
    except OSError as error:
        raise JobError(f"{error.filename or folder} cannot be written: {error.strerror}") from None
    return written


def page(report: ProfileReport) -> str:
    parts = [f"<h1>{escape(report.place)}</h1>"]
    for topic in report.topics:
        parts += _topic(topic)
    body = "\n".join(parts)
    title = escape(f"Profile of {report.place}")
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        f"<style>{_STYLE}</style></head><body>\n{body}\n</body></html>\n"
    )


def _topic(topic: TopicProfile) -> Iterator[str]:
    facts = topic.facts
    yield f"<h2>{escape(topic.name)}</h2>"
    yield _table(["", ""], list(summary(topic)))
    yield bars(
        "bytes by partition",
        [
            (f"{one.partition.partition}", one.facts.bytes, f"{size(one.facts.bytes)}, {one.facts.records:,} records")
            for one in topic.partitions[:_MOST_BARS]
        ],
    )
    series = facts.times
    width = series.width_s
    if series.buckets:
        first, last = min(series.buckets), max(series.buckets)
        # Empty buckets are drawn as zeros; it is enough to draw those next to a bucket with records.
        numbers = sorted({n for b in series.buckets for n in (b - 1, b, b + 1) if first <= n <= last})
        points = [(float(n * width), series.buckets.get(n, (0, 0))[0] / width) for n in numbers]
        most = max(value for _, value in points)
        yield area(f"records per second, in steps of {duration(width)}", points, moment, f"{most:,.1f}")
    yield from _sizes("size of values", facts.value_sizes)
    yield from _sizes("size of keys", facts.key_sizes)
    yield from _sizes("size of batches", facts.batch_sizes)
    if topic.keys is not None and topic.keys.top:
        yield bars(
            "keys with the most records",
            [(key_text(key), records, f"{records:,}, {size(total)}") for key, records, total in topic.keys.top],
        )
    if facts.codecs:
        rows = [
            (name, f"{codec.batches:,}", size(codec.bytes), "" if codec.ratio is None else f"{codec.ratio:.2f}")
            for name, codec in sorted(facts.codecs.items())
        ]
        yield _table(["compression", "batches", "size", "ratio"], rows)


def summary(topic: TopicProfile) -> Iterator[tuple[str, str]]:
    """Yield the most important statistics as text."""
    facts, keys = topic.facts, topic.keys
    yield "partitions", f"{len(topic.partitions):,}"
    yield "records", f"{facts.records:,}"
    yield "size on disk", f"{size(facts.bytes)} in {facts.batches:,} batches"
    if facts.min_time is not None and facts.max_time is not None:
        yield "times", f"{moment(facts.min_time / 1000)} to {moment(facts.max_time / 1000)}"
    if topic.skew is not None:
        yield "fullest partition", f"{topic.skew:.2f} times the average"
    if keys is not None:
        yield "distinct keys", f"{keys.distinct:,} ({facts.keyless:,} records without a key)"
        yield "superseded records", f"{share(keys.superseded, facts.records)}"
        freed = topic.freed_bytes
        if freed is not None:
            yield "compaction would free", f"about {size(freed)} ({share(freed, facts.bytes)})"
        yield "tombstones", f"{facts.tombstones:,}; the latest record of {keys.tombstones_last:,} keys is a tombstone"
    yield "aborted records", share(facts.aborted_records, facts.aborted_records + facts.records)
    yield "timestamps out of order", share(facts.out_of_order, facts.records)


def _sizes(title: str, sizes: SizeHistogram) -> Iterator[str]:
    if sizes.total:
        shares = [("half are up to", 0.5), ("90 %", 0.9), ("99 %", 0.99), ("99.9 %", 0.999)]
        rows = [(name, float(sizes.quantile(part)), size(sizes.quantile(part))) for name, part in shares]
        yield bars(title, [*rows, ("the largest", float(sizes.largest), size(sizes.largest))])


def _table(heads: Sequence[str], rows: Sequence[tuple[str, ...]]) -> str:
    lines = ["".join(f"<td>{escape(cell)}</td>" for cell in row) for row in rows]
    top = "".join(f"<th>{escape(head)}</th>" for head in heads) if any(heads) else ""
    return f"<table>{f'<tr>{top}</tr>' if top else ''}{''.join(f'<tr>{line}</tr>' for line in lines)}</table>"


def share(part: int, whole: int) -> str:
    return f"{part:,} ({part / whole:.1%})" if whole else "0"


def size(count: int) -> str:
    amount, unit = float(count), 0
    while amount >= 1023.95 and unit < len(_UNITS) - 1:
        amount, unit = amount / 1024, unit + 1
    return f"{count} B" if unit == 0 else f"{amount:.1f} {_UNITS[unit]}"


def duration(seconds: int) -> str:
    for name, length in (("week", 604_800), ("day", 86_400), ("hour", 3600), ("minute", 60)):
        if seconds >= length:
            count = seconds // length
            return f"{count} {name}{'s' if count > 1 else ''}"
    return f"{seconds} second{'s' if seconds > 1 else ''}"


def moment(seconds: float) -> str:
    try:
        return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S}"
    except (OverflowError, ValueError, OSError):
        return f"{seconds:.0f} s"
