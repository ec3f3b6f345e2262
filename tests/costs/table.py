"""Rows of the cost table, and the table as Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tailrace.protocol.api_keys import ApiKey
from tests.costs.measure import Cost
from tests.costs.recipe import Recipe


@dataclass(slots=True)
class Row:
    """The most expensive request of an API that was found."""

    key: ApiKey
    recipe: Recipe
    cost: Cost
    peak_bytes: int  # the most that any request of this API took
    tried: int
    kafka: Cost | None = None

    def __str__(self) -> str:
        reported = f"{self.key.name}: wait {self.cost.wait_s:.3f} s, CPU {self.cost.cpu_s:.2f} s,"
        reported += f" {self.cost.peak_bytes / 1e6:.0f} MB, {self.cost.outcome or 'answered'}: {self.recipe}"
        return (
            reported if self.kafka is None else f"{reported}; Kafka {self.kafka.wait_s:.3f} s, {self.kafka.cpu_s:.2f} s"
        )


def markdown(rows: Sequence[Row]) -> str:
    """Return the table, the longest wait first."""
    lines = [
        "| API | request | bytes | wait (s) | CPU (s) | memory (MB) | most memory (MB) | response |"
        " Kafka: wait | CPU | memory | response |",
        "|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for row in sorted(rows, key=lambda one: -one.cost.badness):
        ours = f"{_seconds(row.cost)} | {row.cost.cpu_s:.2f} | {_megabytes(row.cost.peak_bytes)}"
        kafka = " | | | "
        if row.kafka is not None:
            kafka = f"{_seconds(row.kafka)} | {row.kafka.cpu_s:.2f} | {_megabytes(row.kafka.peak_bytes)}"
            kafka += f" | {_response(row.kafka)}"
        recipe = str(row.recipe).replace("|", "\\|")
        lines.append(
            f"| {row.key.name} | {recipe} | {row.cost.request_bytes:,} | {ours} | {_megabytes(row.peak_bytes)}"
            f" | {_response(row.cost)} | {kafka} |"
        )
    return "\n".join(lines) + "\n"


def _seconds(cost: Cost) -> str:
    return f"**{cost.wait_s:.3f}**" if cost.wait_s > 0.1 else f"{cost.wait_s:.3f}"


def _megabytes(size: int) -> str:
    return f"{size / 1e6:.0f}"


def _response(cost: Cost) -> str:
    return cost.outcome or f"{cost.response_bytes:,}"
