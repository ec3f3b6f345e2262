"""ForgottenTopics: deletes the committed offsets of deleted topics, of some groups at a time.

A topic of the same name may be created before all groups are done. Its commits are after the log end at the deletion,
and are kept.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection
from typing import Final

from tailrace.coordinator.offsets.committed_offsets import CommittedOffsets
from tailrace.coordinator.shard import CoordinatorRecord, StateChange
from tailrace.coordinator.timers import Timers
from tailrace.model.errors import ErrorCode
from tailrace.model.ids import Offset

GROUPS_AT_ONCE: Final = 256
RECORDS_AT_ONCE: Final = 256
_TIMER: Final = "forget"


class ForgottenTopics:
    def __init__(self, timers: Timers, offsets: CommittedOffsets) -> None:
        self._timers = timers
        self._offsets = offsets
        self._waiting: dict[str, Offset] = {}  # topic → log end at its deletion
        self._gone: dict[str, Offset] = {}  # the topics whose offsets are being deleted
        self._groups: deque[str] = deque()  # groups that may have offsets of these topics
        self._is_writing = False

    def add(self, topics: Collection[str], end: Offset, now_ms: int) -> None:
        """Delete the offsets of topics that were deleted when the log ended at `end`."""
        self._waiting.update(dict.fromkeys(topics, end))
        self._offsets.hide(topics, end)
        self._timers.schedule(_TIMER, now_ms, self._delete_some)

    def _delete_some(self, now_ms: int) -> StateChange[None] | None:
        if self._is_writing:
            return None
        if not self._groups:
            self._offsets.unhide(self._gone.keys() - self._waiting.keys())
            self._gone, self._waiting = self._waiting, {}
            if not self._gone:
                return None
            self._groups.extend(self._offsets.group_ids())
        records: list[CoordinatorRecord] = []
        checked = 0
        for group_id in self._groups:
            if checked == GROUPS_AT_ONCE or len(records) >= RECORDS_AT_ONCE:
                break
            records += self._offsets.plan_forget(group_id, self._gone)
            checked += 1
        if len(records) > RECORDS_AT_ONCE:
            checked -= 1  # the last group has more records than fit
            del records[RECORDS_AT_ONCE:]
        self._is_writing = True

        def done(error: ErrorCode, now_ms: int) -> None:
            self._is_writing = False
            if error is not ErrorCode.NONE:
                return  # the runtime runs this timer again
            for _ in range(checked):
                self._groups.popleft()
            self._timers.schedule(_TIMER, now_ms, self._delete_some)

        return StateChange(records, None, is_atomic=False, on_done=done)
