"""InternalErrors: exceptions that only a bug can raise. The broker logs them, counts them and continues.

An exception costs the request, timer or task that raised it. Two kinds stop the broker instead, because acknowledged
records could be lost otherwise: a FatalError, and a failed assertion inside `log` or `metadata`.
"""

from __future__ import annotations

import logging
from collections import Counter

from tailrace.diagnostics.limited_log import LimitedLog
from tailrace.metrics.families import Family, Kind, Sample
from tailrace.model.errors import FatalError

_STATE_PACKAGES = ("tailrace.log.", "tailrace.metadata.")


class InternalErrors:
    def __init__(self, logger: logging.Logger) -> None:
        self._log = LimitedLog(logger)
        self.counts: Counter[str] = Counter()  # errors survived, by the place that raised them

    def survive(self, place: str, error: Exception, now_ms: int, **about: object) -> None:
        """Log and count an exception. Raise it again if the broker must stop. `place` names the code that raised it."""
        raise_fatal(error)
        self.counts[place] += 1
        self._log.write(
            logging.ERROR, place, now_ms, f"internal error in {place}; please report it", trace=error, **about
        )

    def family(self) -> Family:
        samples = [Sample({"place": place}, count) for place, count in sorted(self.counts.items())]
        return Family("tailrace_internal_errors", Kind.COUNTER, "Exceptions that the broker survived.", samples)


def raise_fatal(error: BaseException) -> None:
    """Raise an exception again if the broker must stop because of it."""
    if is_fatal(error):
        raise error


def is_fatal(error: BaseException) -> bool:
    """Return True if the broker must stop because of this exception."""
    if isinstance(error, FatalError):
        return True
    return isinstance(error, AssertionError) and _raising_module(error).startswith(_STATE_PACKAGES)


def _raising_module(error: BaseException) -> str:
    trace = error.__traceback__
    name = ""
    while trace is not None:
        name = trace.tb_frame.f_globals.get("__name__", "")
        trace = trace.tb_next
    return name
