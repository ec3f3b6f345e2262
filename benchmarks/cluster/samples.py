"""Samples of both kinds of cluster, and the rows made of them."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from benchmarks.broker.comparison import KAFKA, OURS, Comparison


@dataclass
class Samples:
    """Measured values by work and kind of cluster."""

    found: dict[str, dict[str, list[float]]] = field(default_factory=dict)

    def add(self, work: str, kind: str, figure: float) -> None:
        self.found.setdefault(work, {}).setdefault(kind, []).append(figure)

    def median(self, work: str, kind: str) -> float | None:
        figures = self.found.get(work, {}).get(kind)
        return statistics.median(figures) if figures else None

    def row(
        self,
        work: str,
        report: Callable[[float], str],
        *,
        at_most: float | None = None,
        title: str = "",
        more_is_better: bool = False,
    ) -> Comparison:
        """Return the medians of both kinds. Costs are compared, so a value that should be large counts inversely."""
        medians = {kind: found for kind in (OURS, KAFKA) if (found := self.median(work, kind)) is not None}
        reported = {kind: report(found) for kind, found in medians.items()}
        costs = {kind: 1 / found if more_is_better and found else found for kind, found in medians.items()}
        made = Comparison(title or work, reported, costs)
        if at_most is None:
            return made
        return Comparison(
            made.work, reported, costs, f"≤ {at_most:g}×", None if made.ratio is None else made.ratio <= at_most
        )


def table(rows: Sequence[Comparison]) -> str:
    lines = [f"| work | {OURS} | {KAFKA} | cost by Kafka's | goal | met |", "|---|---|---|---|---|---|"]
    for row in rows:
        ratio = "" if row.ratio is None else f"{row.ratio:.2f}×"
        met = "" if row.is_met is None else ("yes" if row.is_met else "**no**")
        cells = [row.work, row.reported.get(OURS, ""), row.reported.get(KAFKA, ""), ratio, row.goal, met]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)
