"""A plan of faults: which fault happens to which node, and when. The same seed and shape give the same plan.

Faults overlap, mostly two at a time. Sometimes there is a pause, so that replicas catch up. The active controller is
known only when a fault starts; the plan names it `active`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Final

ACTIVE: Final = "active"
CLIENTS: Final = "clients"

# Each kind of fault with its weight, and its shortest and longest duration in seconds.
BROKER_KINDS: Final = {
    "kill": (5, 0.2, 6.0),  # kill -9; restart after the duration.
    "pause": (4, 0.5, 9.0),  # SIGSTOP, then SIGCONT.
    "leave": (1, 0.1, 2.0),  # SIGTERM; restart after the process has ended.
    "apart": (4, 1.0, 9.0),  # Separated from another broker: one direction or both, held or cut.
    "deposed": (4, 2.0, 10.0),  # Separated from controllers and brokers, but not from clients.
    "unheard": (3, 1.0, 9.0),  # Separated from controllers only.
    "speechless": (3, 0.5, 5.0),  # Its responses to clients do not arrive, or client connections are cut.
    "slow": (2, 2.0, 8.0),  # All requests to it, or all its responses, are slow.
}
CONTROLLER_KINDS: Final = {
    "kill": (2, 0.5, 5.0),
    "pause": (2, 1.0, 8.0),
    # separated from the other controllers, or from the brokers if there is no other controller
    "deposed": (2, 1.0, 8.0),
}
WAYS: Final = ("held", "cut", "held forward", "held backward")
REST_S: Final = (8.0, 14.0)


@dataclass(frozen=True, slots=True)
class Fault:
    number: int
    at_s: float
    for_s: float
    kind: str
    node: str
    other: str = ""
    way: str = ""

    @property
    def until_s(self) -> float:
        return self.at_s + self.for_s

    def __str__(self) -> str:
        what = " ".join(part for part in (self.kind, self.node, self.other, self.way) if part)
        return f"#{self.number} at {self.at_s:.1f} s for {self.for_s:.1f} s: {what}"


def make_plan(seed: int, seconds: float, brokers: Sequence[str], controllers: int) -> list[Fault]:
    random = Random(f"{seed} {len(brokers)} {controllers}")
    plan: list[Fault] = []
    now = 2.0
    while now < seconds:
        if random.random() < 0.12:
            now = max([now, *(one.until_s for one in plan)]) + random.uniform(*REST_S)
        at_once = random.choices((1, 2, 3), (5, 4, 1))[0]
        troubled = [one for one in plan if one.until_s > now]
        if len(troubled) >= at_once:
            now = min(one.until_s for one in troubled) + random.uniform(0.0, 1.0)
            continue
        fault = _fault(random, len(plan), now, {one.node for one in troubled}, brokers, controllers)
        if fault is not None and fault.until_s < seconds:
            plan.append(fault)
        now += random.uniform(0.3, 6.0)
    return plan


def _fault(
    random: Random, number: int, now: float, troubled: set[str], brokers: Sequence[str], controllers: int
) -> Fault | None:
    is_controller = ACTIVE not in troubled and random.random() < 0.2
    kinds = CONTROLLER_KINDS if is_controller else BROKER_KINDS
    kind = random.choices(list(kinds), [often for often, _, _ in kinds.values()])[0]
    _, least, most = kinds[kind]
    for_s = random.uniform(least, most)
    way = random.choice(WAYS)
    if is_controller:
        return Fault(number, now, for_s, kind, ACTIVE, way=way if kind == "deposed" else "")
    free = [one for one in brokers if one not in troubled]
    if not free:
        return None
    node = random.choice(free)
    other = random.choice([one for one in brokers if one != node]) if kind == "apart" else ""
    has_way = kind in ("apart", "deposed", "unheard", "speechless")
    return Fault(number, now, for_s, kind, node, other, way if has_way else "")
