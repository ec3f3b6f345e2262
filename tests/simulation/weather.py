"""Weather: the kinds and rates of faults in a schedule. Each seed has some kinds and not others.

A bug often shows only where other faults are absent: a broker that is stopped all the time never falls behind by just
one record. Schedules with a bit of every fault are all alike; these are not.
"""

from __future__ import annotations

from random import Random

FAULTS = ("kill", "leave", "power", "stop", "cut", "mend", "fail over", "elect", "reassign", "delete", "deaf")
_ALWAYS = {"mend"}  # otherwise a cut would stay

_MOSTLY_QUICK = (1,) * 20 + (2,) * 10 + (5,) * 10 + (30,) * 9 + (500,)
_QUICK = (1, 1, 2, 5)
_UNSTEADY = (1, 2, 5, 10, 30, 60, 150, 400)


class Weather:
    def __init__(self, random: Random, scripts: tuple[str, ...]) -> None:
        kinds = [one for one in FAULTS if one in _ALWAYS or random.random() < 0.65]
        self.faults = {one: random.choice((1, 1, 2, 4)) for one in kinds}
        self.fault_rate = random.choice((0.0, 0.05, 0.15, 0.15, 0.3))  # probability in each step
        self.scripts = [one for one in scripts if random.random() < 0.5]
        # probability in each step while no script is played
        self.script_rate = random.choice((0.02, 0.06, 0.15)) if self.scripts else 0.0
        # probability in each step; with few records between two
        self.elections = random.choice((0.0, 0.0, 0.0, 0.1, 0.5))
        self.restarts = random.choice((0.08, 0.08, 0.3))  # probability of restarting a stopped broker, in each step
        self.appends = random.choice((1, 3, 3, 6))  # largest number of plain records in each step
        self.loss = random.choice((0.0, 0.01, 0.03, 0.03))
        self.delays_ms = random.choice((_MOSTLY_QUICK, _MOSTLY_QUICK, _QUICK, _UNSTEADY))
        self.reads_metadata = random.choice((0.9, 0.7, 0.3))  # probability whenever a broker runs its work
        self.segment_bytes = random.choice((600, 2_000))
        self.lag_ms = random.choice((250, 800))  # replica.lag.time.max.ms
        self.alter_timeout_ms = random.choice((300, 1_200))
        self.flushes_ms = random.choice(((0, 1, 5, 30), (0, 1, 5, 30, 300), (10, 300, 1_500)))  # duration of a sync

    def fault(self, random: Random) -> str:
        return random.choices(list(self.faults), list(self.faults.values()))[0]
