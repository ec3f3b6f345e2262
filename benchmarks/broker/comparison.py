"""Comparison: one line of a broker table, from figures of each contender."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from benchmarks.broker.contenders import Contender

OURS, KAFKA, KFAKE = "Tailrace", "Apache Kafka", "kfake"


class Figure(Protocol):
    """The result of one run of one contender."""

    @property
    def cost(self) -> float:
        """Return the value that is compared: less is better."""

    def __str__(self) -> str: ...


@dataclass(frozen=True)
class Comparison:
    work: str
    reported: dict[str, str]  # text by contender
    costs: dict[str, float]
    goal: str = ""
    is_met: bool | None = None

    @property
    def ratio(self) -> float | None:
        """Return our cost divided by Kafka's."""
        ours, theirs = self.costs.get(OURS), self.costs.get(KAFKA)
        return None if ours is None or not theirs else ours / theirs


def compare(work: str, figures: dict[str, Figure], *, at_most: float | None = None) -> Comparison:
    """Compare the contenders. `at_most`: the goal, as a share of Kafka's cost."""
    made = Comparison(
        work,
        {name: str(figure) for name, figure in figures.items()},
        {name: figure.cost for name, figure in figures.items()},
    )
    if at_most is None:
        return made
    is_met = None if made.ratio is None else made.ratio <= at_most
    return Comparison(made.work, made.reported, made.costs, f"≤ {at_most:g}×", is_met)


def against_limit(work: str, reported: dict[str, str], costs: dict[str, float], limit: float, unit: str) -> Comparison:
    """Compare with a fixed limit, independent of other contenders."""
    return Comparison(work, reported, costs, f"≤ {limit:g} {unit}", costs[OURS] <= limit)


def take_turns(contenders: Sequence[Contender], rounds: int, run: Callable[[Contender], Figure]) -> dict[str, Figure]:
    """Return each contender's median by cost, over rounds in which they take turns."""
    figures: dict[str, list[Figure]] = {contender.name: [] for contender in contenders}
    for _ in range(rounds):
        for contender in contenders:
            figures[contender.name].append(run(contender))
    return {
        name: min(found, key=lambda one: abs(one.cost - statistics.median_low([each.cost for each in found])))
        for name, found in figures.items()
    }


def table(rows: Sequence[Comparison]) -> str:
    lines = [
        f"| work | {OURS} | {KAFKA} | {KFAKE} | {OURS} by Kafka | goal | met |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        ratio = "" if row.ratio is None else f"{row.ratio:.2f}×"
        met = "" if row.is_met is None else ("yes" if row.is_met else "**no**")
        cells = [row.work, *(row.reported.get(name, "") for name in (OURS, KAFKA, KFAKE)), ratio, row.goal, met]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)
