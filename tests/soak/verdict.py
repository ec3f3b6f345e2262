"""Verdict on a soak: which promises the broker has not kept."""

from __future__ import annotations

import statistics
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from tests.soak.honest import Operation

NOISE_S: Final = 0.02  # a difference that a busy machine makes by itself
GROWTH_BYTES_MAX: Final = 50_000_000
OPERATIONS_MIN: Final = 20


@dataclass(frozen=True, slots=True)
class Report:
    """The measurements of a soak."""

    operations: Sequence[Operation]
    memory: Sequence[tuple[float, int]]  # time and resident size
    attacked_at: float
    is_alive: bool
    status: int | None  # the broker's exit status when it was stopped
    errors: str  # what the broker wrote to standard error
    acts: Mapping[str, int]  # how much each attacker has done


def judge(report: Report, ratio: float) -> list[str]:
    """Return a sentence for each promise that was not kept."""
    problems = []
    if not report.is_alive:
        problems.append(f"the broker ended by itself: {report.errors[-2000:]}")
    elif report.status != 0:
        problems.append(f"the broker's stop ended with status {report.status}")
    failures = Counter((one.client, one.error) for one in report.operations if one.error)
    problems += [f"{client} saw {count} times: {error}" for (client, error), count in failures.items()]
    problems += _latency_problems(report, ratio)
    problems += [f"the attacker {name} did nothing" for name, count in report.acts.items() if not count]
    growth = memory_growth(report)
    if growth > GROWTH_BYTES_MAX:
        problems.append(f"memory grew by {growth / 1e6:.0f} MB over the second half of the attack")
    return problems


def _latency_problems(report: Report, ratio: float) -> list[str]:
    alone: dict[str, list[float]] = defaultdict(list)
    attacked: dict[str, list[float]] = defaultdict(list)
    for one in report.operations:
        if not one.error:
            (attacked if one.at >= report.attacked_at else alone)[one.client].append(one.seconds)
    problems = []
    for client in sorted({one.client for one in report.operations}):
        if len(alone[client]) < OPERATIONS_MIN or len(attacked[client]) < OPERATIONS_MIN:
            problems.append(f"{client} did {len(alone[client])} and then {len(attacked[client])} operations: too few")
            continue
        for name, cut in (("median", 49), ("99th percentile", 98)):
            before = statistics.quantiles(alone[client], n=100)[cut]
            after = statistics.quantiles(attacked[client], n=100)[cut]
            if after > before * ratio + NOISE_S:
                problems.append(f"{client}: the {name} rose from {before * 1e3:.1f} ms to {after * 1e3:.1f} ms")
    return problems


def memory_growth(report: Report) -> float:
    """Return how many bytes a straight line through the second half of the attack rises."""
    attacked = [one for one in report.memory if one[0] >= report.attacked_at]
    half = attacked[len(attacked) // 2 :]
    if len(half) < 3:
        return 0.0
    slope, _ = statistics.linear_regression([at for at, _ in half], [size for _, size in half])
    return slope * (half[-1][0] - half[0][0])
