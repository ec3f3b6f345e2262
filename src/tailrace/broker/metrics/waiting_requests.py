"""describe_waiting: the requests that wait, what would wake them, and the fetch sessions, for administrators."""

from __future__ import annotations

from typing import Any, Final

from tailrace.fetch.sessions import FetchSessions
from tailrace.waiting.purgatory import Purgatory

SHOWN_MAX: Final = 500  # operations, and sessions: building the description takes a few milliseconds


def describe_waiting(purgatory: Purgatory, sessions: FetchSessions, now_ms: int) -> dict[str, Any]:
    counts = purgatory.statistics()
    return {
        "time": now_ms,
        "waiting": counts.waiting,
        "watchedKeys": counts.watched_keys,
        "completed": counts.completed,
        "expired": counts.expired,
        "operations": [
            {
                "kind": one.kind,
                "deadlineInMs": one.deadline_ms - now_ms,
                "keyCount": one.key_count,
                "keys": one.keys,
                **one.facts,
            }
            for one in purgatory.waiting(SHOWN_MAX)
        ],
        "sessionCount": len(sessions),
        "sessions": [
            {
                "id": one.id,
                "epoch": one.epoch,
                "isFollower": one.is_privileged,
                "partitions": len(one),
                "ageMs": now_ms - one.created_ms,
                "unusedMs": now_ms - one.last_used_ms,
            }
            for one in sessions.newest(SHOWN_MAX)
        ],
    }
