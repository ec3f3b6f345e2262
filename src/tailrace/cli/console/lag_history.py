"""LagHistory: the lag of each group over the last day, in records and in seconds.

The console runs `tailrace groups lag --times --watch` and keeps its lines in rings: one point per interval and group.
The number of groups and of points is bounded. Groups that are gone are dropped when their last point is a day old.
"""

from __future__ import annotations

import asyncio
import json
import logging
from array import array
from collections.abc import Sequence
from typing import Any, Final

from tailrace.cli.console.command_process import CommandRunner, TooBusy, TooLong

DAY_MS: Final = 86_400_000
GROUPS_MAX: Final = 500
_FIELDS: Final = 3  # time, lag in records, lag in seconds
_UNKNOWN: Final = -1.0
_RETRY_S: Final = 10.0
_LOGGER = logging.getLogger("tailrace.console")


class LagHistory:
    def __init__(self, interval_s: float) -> None:
        self.interval_s = interval_s
        self._points_max = max(int(DAY_MS / 1_000 / interval_s), 1)
        self._rings: dict[str, array[float]] = {}

    async def record(self, runner: CommandRunner, words: Sequence[str]) -> None:
        """Run the command and keep its lines, until the task is cancelled."""
        while True:
            try:
                async for line in runner.stream(words):
                    self.note(line)
            except (TooBusy, TooLong, OSError) as error:  # OSError: no process or no descriptor is left
                _LOGGER.warning("the lag of groups is not recorded now: %s", error)
            except Exception:
                _LOGGER.exception("the lag of groups is not recorded now: internal error; please report it")
            await asyncio.sleep(_RETRY_S)

    def note(self, line: bytes) -> None:
        """Keep one line of the command."""
        try:
            reading = json.loads(line)
            time_ms, lags = int(reading["time"]), list(reading["lags"])
        except (ValueError, KeyError, TypeError):
            return  # an error that the command printed: there is no point at this time
        sums: dict[str, tuple[int, float]] = {}
        for one in lags:
            lag, seconds = sums.get(one["group"], (0, _UNKNOWN))
            age = _UNKNOWN if one["lagSeconds"] is None else float(one["lagSeconds"])
            sums[one["group"]] = lag + int(one["lag"]), max(seconds, age)
        for group, (lag, seconds) in sums.items():
            self._add(group, time_ms, lag, seconds)
        for group in [name for name, ring in self._rings.items() if ring[-_FIELDS] < time_ms - DAY_MS]:
            del self._rings[group]

    def _add(self, group: str, time_ms: int, lag: int, seconds: float) -> None:
        ring = self._rings.get(group)
        if ring is None:
            if len(self._rings) >= GROUPS_MAX:
                return
            ring = self._rings[group] = array("d")
        ring.extend((time_ms, lag, seconds))
        if len(ring) > self._points_max * _FIELDS:
            del ring[:_FIELDS]

    def points(self, group: str) -> list[dict[str, Any]]:
        """Return the points of a group, the oldest first."""
        ring = self._rings.get(group, array("d"))
        return [
            {"time": int(ring[at]), "lag": int(ring[at + 1]), "seconds": None if ring[at + 2] < 0 else ring[at + 2]}
            for at in range(0, len(ring), _FIELDS)
        ]
