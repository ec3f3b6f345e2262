"""describe_waiting: waiting requests and their keys, fetch sessions, and records in flight of share groups."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, Final

from tailrace.fetch.sessions import FetchSessions
from tailrace.shares.in_flight import RecordState
from tailrace.shares.share_partitions import HostedShare
from tailrace.waiting.purgatory import Purgatory

SHOWN_MAX: Final = 500  # operations, and sessions: building the description takes a few milliseconds

SHARE_RUNS_MAX: Final = 10_000  # runs of records to count


def describe_waiting(
    purgatory: Purgatory, sessions: FetchSessions, shares: Sequence[HostedShare], now_ms: int
) -> dict[str, Any]:
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
                "clientId": one.client_id,
                "user": None if one.client is None else one.client.principal,
                "address": None if one.client is None else f"{one.client.client_host}:{one.client.client_port}",
                "waitedMs": None if one.since_ms is None else now_ms - one.since_ms,
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
        "sharePartitionCount": len(shares),
        "sharePartitions": list(_share_partitions(shares)),
    }


def _share_partitions(shares: Sequence[HostedShare]) -> Iterator[dict[str, Any]]:
    """Yield the share partitions with their records in flight by state, until the limit of runs."""
    runs = 0
    for one in shares[:SHOWN_MAX]:
        states: Counter[RecordState] = Counter()
        members: Counter[str] = Counter()
        for batch in one.share.batches:
            for run in batch.runs:
                states[run.state] += len(run)
                if run.state is RecordState.ACQUIRED:
                    members[run.member_id] += len(run)
            runs += len(batch.runs)
        partition = one.replica.key
        yield {
            "group": one.key.group_id,
            "topic": partition.topic,
            "partition": partition.partition,
            "startOffset": one.share.start_offset,
            "endOffset": one.share.end_offset,
            **{state.name.lower(): states[state] for state in RecordState},
            "members": [{"memberId": member, "acquired": count} for member, count in members.most_common(10)],
        }
        if runs > SHARE_RUNS_MAX:
            return
