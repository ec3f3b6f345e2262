"""Checks the results one by one against the expected results of the input.

Spark's checkpoint records how far a query has read, and its watermark. So the check is exact however the pipeline
ended: an existing result must be correct and unique, and a result that is due by the watermark must exist.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from examples.orders.events import ORDERS, PAYMENTS
from examples.orders.expected import Expected, Revenue, Settled, expect
from examples.orders.lake import settled_rows
from examples.orders.pipeline import REVENUE, SETTLED, checkpoint
from tailrace.client.batches import FetchOptions, fetch_range
from tailrace.client.cluster.cluster_client import ClusterClient
from tailrace.client.offsets import latest_offsets
from tailrace.client.visible_batches import IsolationLevel
from tailrace.model.ids import Offset, TopicPartition
from tailrace.records.record import iter_records


class Progress(NamedTuple):
    """Return the progress of a query, from its checkpoint."""

    offsets: dict[TopicPartition, Offset]
    watermark_ms: int


@dataclass
class Verdict:
    """The wrong results of one query, if any, with a few examples of each kind."""

    name: str
    results: int = 0
    twice: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)

    @property
    def is_right(self) -> bool:
        return not (self.twice or self.wrong or self.missing)

    def __str__(self) -> str:
        if self.is_right:
            return f"{self.name}: {self.results:,} results, all as expected, none missing, none twice"
        kinds = {"twice": self.twice, "wrong": self.wrong, "missing": self.missing}
        texts = (f"{len(found)} {kind} ({'; '.join(found[:3])})" for kind, found in kinds.items() if found)
        return f"{self.name}: of {self.results:,} results {', '.join(texts)}"


def check(bootstrap: str, directory: Path) -> list[Verdict]:
    with ClusterClient(bootstrap) as cluster:
        return [check_settled(cluster, directory), check_revenue(cluster, directory)]


def check_settled(cluster: ClusterClient, directory: Path) -> Verdict:
    """Check the rows of the Iceberg table."""
    progress = progress_of(checkpoint(directory, SETTLED))
    expected = _expected(cluster, progress)
    found = [
        (
            row["order_id"],
            Settled(row["country"], row["amount_cents"], _ms(row["ordered_at"]), row["payment_id"]),
        )
        for row in settled_rows(directory)
    ]
    return _compare("settled", found, expected.settled, expected.settled_by(progress.watermark_ms))


def check_revenue(cluster: ClusterClient, directory: Path) -> Verdict:
    progress = progress_of(checkpoint(directory, REVENUE))
    expected = _expected(cluster, progress)
    found = [
        ((one["window_ms"], one["country"]), Revenue(one["orders"], one["paid"], one["revenue_cents"]))
        for one in map(json.loads, values_of(cluster, REVENUE))
    ]
    return _compare("revenue", found, expected.revenue, expected.final_by(progress.watermark_ms))


def _compare(name: str, found: list[tuple[Any, Any]], expected: Mapping[Any, Any], due: set[Any]) -> Verdict:
    counts = Counter(key for key, _ in found)
    return Verdict(
        name,
        len(found),
        twice=[f"{key}" for key, count in counts.items() if count > 1],
        wrong=[
            f"{key} is {value}, should be {expected.get(key)}" for key, value in found if expected.get(key) != value
        ],
        missing=[f"{key}" for key in sorted(due - counts.keys())],
    )


def progress_of(path: Path) -> Progress:
    """Return the last committed batch, or an empty progress before the first one."""
    done = sorted(int(file.name) for file in (path / "commits").glob("[0-9]*"))
    if not done:
        return Progress({}, 0)
    lines = (path / "offsets" / str(done[-1])).read_text().splitlines()
    offsets = {
        TopicPartition(topic, int(partition)): offset
        for source in lines[2:]
        for topic, partitions in json.loads(source).items()
        for partition, offset in partitions.items()
    }
    return Progress(offsets, json.loads(lines[1])["batchWatermarkMs"])


def _expected(cluster: ClusterClient, progress: Progress) -> Expected:
    def read(topic: str) -> Iterable[bytes]:
        ends = {partition: end for partition, end in progress.offsets.items() if partition.topic == topic}
        return values_of(cluster, topic, ends)

    return expect(read(ORDERS), read(PAYMENTS))


def values_of(
    cluster: ClusterClient, topic: str, ends: Mapping[TopicPartition, Offset] | None = None
) -> Iterator[bytes]:
    """Yield the committed values of a topic, up to these offsets or all."""
    if ends is None:
        partitions = [TopicPartition(topic, number) for number in range(len(cluster.topic(topic).partitions))]
        ends = latest_offsets(cluster, partitions, IsolationLevel.READ_COMMITTED)
    options = FetchOptions(isolation=IsolationLevel.READ_COMMITTED)
    for partition, end in ends.items():
        for batch in fetch_range(cluster, partition, 0, end, options):
            for record in iter_records(batch):
                if record.offset < end:
                    yield bytes(record.value or b"")


def _ms(moment: Any) -> int:
    return round(moment.timestamp() * 1000)
