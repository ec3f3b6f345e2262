"""Search for the most expensive request of an API."""

from __future__ import annotations

import time
from typing import Final

from tailrace.broker.requests.api_table import ApiRow
from tests.costs.candidates import candidates
from tests.costs.climb import climb
from tests.costs.measure import DEADLINE_S, Cost
from tests.costs.recipe import Recipe
from tests.costs.table import Row
from tests.costs.world import World

# APIs whose names contain these words change the state, so each of their requests meets a broker with the first state.
_CHANGING: Final = ("CREATE", "DELETE", "ALTER", "UPDATE", "JOIN", "HEARTBEAT", "COMMIT", "WRITE", "INIT", "ADD")


def worst_of(
    world: World,
    row: ApiRow,
    *,
    climb_s: float = 0,
    seed: int = 1,
    deadline_s: float = DEADLINE_S,
    verbose: bool = False,
) -> Row:
    """Measure the candidates of an API, make the worst of them worse for `climb_s` seconds, and return the worst."""
    measured: list[tuple[Recipe, Cost]] = []
    changes = any(word in row.key.name for word in _CHANGING)
    resets = world.resets

    def attempt(recipe: Recipe) -> Cost:
        nonlocal resets
        if changes and measured and world.resets == resets:
            world.reset()
        resets = world.resets
        cost = world.measure(recipe, deadline_s)
        measured.append((recipe, cost))
        if verbose:
            figures = f"{cost.wait_s:7.3f} s wait {cost.cpu_s:6.2f} s CPU {cost.peak_bytes / 1e6:7.0f} MB"
            print(f"  {figures} {cost.outcome:12} {recipe}", flush=True)
        return cost

    for recipe in candidates(row):
        attempt(recipe)
    if climb_s:
        best, cost = max(measured, key=lambda one: one[1].badness)
        climb(best, cost, attempt, time.monotonic() + climb_s, seed)
    recipe, cost = max(measured, key=lambda one: one[1].badness)
    return Row(row.key, recipe, cost, max(one.peak_bytes for _, one in measured), len(measured))
