"""LimitedLog: one log line for many similar events, so that a client cannot fill the disk with log lines."""

from __future__ import annotations

import logging
from typing import Final

from tailrace.model.log_fields import fields

INTERVAL_MS: Final = 10_000
KINDS_MAX: Final = 64
_OTHERS: Final = "others"


class LimitedLog:
    """Writes the first line of a kind at once, then at most one every ten seconds with the number of lines left out."""

    def __init__(self, logger: logging.Logger) -> None:
        self._logger = logger
        self._kinds: dict[str, tuple[int, int]] = {}  # when a kind was last written, how many lines were left out since

    def write(
        self,
        level: int,
        kind: str,
        now_ms: int,
        message: str,
        *,
        trace: BaseException | None = None,
        **about: object,
    ) -> bool:
        """Write a line of a kind, or count it if the last line is recent. Return True if the line was written.

        A kind is a constant of the caller or an error code, never text of a client. If there are many kinds at the same
        time nevertheless, those beyond KINDS_MAX are one kind.
        """
        if kind not in self._kinds and len(self._kinds) >= KINDS_MAX:
            self._forget_old(now_ms)
            if len(self._kinds) >= KINDS_MAX:
                kind = _OTHERS
        written_ms, left_out = self._kinds.get(kind, (None, 0))
        if written_ms is not None and now_ms - written_ms < INTERVAL_MS:
            self._kinds[kind] = (written_ms, left_out + 1)
            return False
        self._kinds[kind] = (now_ms, 0)
        self._logger.log(level, message, exc_info=trace, extra=fields(**about, suppressed=left_out or None))
        return True

    def _forget_old(self, now_ms: int) -> None:
        """Forget the kinds whose next line would be written anyway. The numbers of their lines left out are lost."""
        self._kinds = {kind: seen for kind, seen in self._kinds.items() if now_ms - seen[0] < INTERVAL_MS}
