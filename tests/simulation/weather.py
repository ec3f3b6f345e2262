"""Weather: what a schedule is like. Each seed has some kinds of trouble and not others, each at its own rate.

A mistake often shows only where something else does not happen: a broker that is stopped all the time never falls
behind by just one record. Schedules that all have a bit of everything are all alike; these are not.
"""

from __future__ import annotations

from random import Random

FAULTS = ("kill", "leave", "power", "stop", "cut", "mend", "fail over", "elect", "reassign", "delete", "deaf")
_ALWAYS = {"mend"}  # or a cut would stay for good

_MOSTLY_QUICK = (1,) * 20 + (2,) * 10 + (5,) * 10 + (30,) * 9 + (500,)
_QUICK = (1, 1, 2, 5)
_UNSTEADY = (1, 2, 5, 10, 30, 60, 150, 400)


class Weather:
    def __init__(self, random: Random, scripts: tuple[str, ...]) -> None:
        kinds = [one for one in FAULTS if one in _ALWAYS or random.random() < 0.65]
        self.faults = {one: random.choice((1, 1, 2, 4)) for one in kinds}
        self.fault_rate = random.choice((0.0, 0.05, 0.15, 0.15, 0.3))  # in each step
        self.scripts = [one for one in scripts if random.random() < 0.5]
        self.script_rate = random.choice((0.02, 0.06, 0.15)) if self.scripts else 0.0  # while none is played
        self.elections = random.choice((0.0, 0.0, 0.0, 0.1, 0.5))  # in each step: with few records between two
        self.restarts = random.choice((0.08, 0.08, 0.3))  # of one that is down, in each step
        self.appends = random.choice((1, 3, 3, 6))  # of plain records in each step, at most
        self.loss = random.choice((0.0, 0.01, 0.03, 0.03))
        self.delays_ms = random.choice((_MOSTLY_QUICK, _MOSTLY_QUICK, _QUICK, _UNSTEADY))
        self.reads_metadata = random.choice((0.9, 0.7, 0.3))  # whenever a broker is at work
        self.segment_bytes = random.choice((600, 2_000))
        self.lag_ms = random.choice((250, 800))  # replica.lag.time.max.ms
        self.alter_timeout_ms = random.choice((300, 1_200))
        self.flushes_ms = random.choice(((0, 1, 5, 30), (0, 1, 5, 30, 300), (10, 300, 1_500)))  # how long a sync takes

    def fault(self, random: Random) -> str:
        return random.choices(list(self.faults), list(self.faults.values()))[0]
