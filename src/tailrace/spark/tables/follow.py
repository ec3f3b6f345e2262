"""Follower: keeps a table up to date with its topics until it is stopped.

    wait for records ─► a round ─► the consumer group's offsets ─► sometimes: merge small files, remove old snapshots

Small files are merged in a thread, while the next rounds run.

A round is due when a file of the target size could be filled, or when the oldest waiting records are as old as the
freshness target. It has a bounded number of bytes, so that a follower that is far behind commits what it has. The next
round starts at once while more than that is waiting.

A broker, a catalog or an object store may restart: after an error that a later try may heal, the follower reports it
and tries again after a pause, which doubles with each failure in a row. Other errors end it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from threading import Event
from typing import NamedTuple

from tailrace.model.ids import Offset, TopicPartition
from tailrace.spark.jobs.errors import JobError
from tailrace.spark.jobs.place import as_job_errors
from tailrace.spark.source.group_commits import GroupCommits
from tailrace.spark.tables.background_merge import BackgroundMerge
from tailrace.spark.tables.formats.table import Merged
from tailrace.spark.tables.table_export import Exported, TableExport

POLL_S = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class FollowPolicy:
    freshness_s: float = 60.0
    merge_every: int = 8  # rounds; 0: never
    keep_snapshots_s: float | None = None  # None: snapshots are not removed
    expire_every_s: float = 3600.0
    first_pause_s: float = 1.0  # after a failure
    longest_pause_s: float = 60.0


class Progress(NamedTuple):
    """A report after each round, and while records are waiting."""

    total: Exported
    lag: int  # offsets that are not in the table
    merged: Merged
    problem: str | None = None  # an error, after which the follower tries again
    retry_s: float = 0.0


class Follower:
    def __init__(
        self,
        export: TableExport,
        policy: FollowPolicy,
        *,
        group: GroupCommits | None = None,
        report: Callable[[Progress], None] = lambda progress: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._export = export
        self._policy = policy
        self._group = group
        self._report = report
        self._clock = clock
        self._total = Exported(export.table.name)
        self._merging = BackgroundMerge(export.merge)
        self._ends: dict[TopicPartition, Offset] = {}  # where the table ends
        self._waiting_since: float | None = None
        self._known_lag = 0
        self._rounds = 0
        self._expired_at = clock()

    def run(self, stopped: Event) -> Exported:
        """Export until `stopped` is set. The round that runs then is completed."""
        self._export.open()
        failures = 0
        while not stopped.is_set():
            try:
                self._step(stopped)
                failures = 0
            except JobError as error:
                if not error.is_transient:
                    raise
                pause = min(self._policy.longest_pause_s, self._policy.first_pause_s * 2.0 ** min(failures, 30))
                failures += 1
                self._report(Progress(self._total, self._known_lag, self._merging.merged, str(error), pause))
                stopped.wait(pause)
        self._merging.wait()
        return self._total

    def _step(self, stopped: Event) -> None:
        """Run a round if one is due, else wait a moment."""
        lag = self._known_lag = self._lag()
        self._report(Progress(self._total, lag, self._merging.merged))
        if not self._is_due(lag):
            stopped.wait(min(POLL_S, self._policy.freshness_s / 4))
            return
        done = self._export.run_round()
        self._waiting_since = None
        if done is None:
            self._ends = {}  # another export has moved the ends, or a lost answer was a success
            return
        self._note(done)
        if not stopped.is_set():
            self._maintain()

    def _lag(self) -> int:
        """Return the offsets that the topics have and the table does not."""
        latest = self._export.latest()
        if not self._ends:
            self._ends = self._export.starts(latest)
        return sum(max(0, end - self._ends.get(partition, 0)) for partition, end in latest.items())

    def _is_due(self, lag: int) -> bool:
        if lag == 0:
            self._waiting_since = None
            return False
        if self._waiting_since is None:
            self._waiting_since = self._clock()
        is_old = self._clock() - self._waiting_since >= self._policy.freshness_s
        return is_old or self._export.fills_a_file(lag)

    def _note(self, done: Exported) -> None:
        self._rounds += 1
        self._total.add(done)
        self._ends = dict(done.ends or {})
        if self._group is not None:
            with as_job_errors():
                self._group.commit(self._ends)
        self._report(Progress(self._total, done.lag, self._merging.merged))

    def _maintain(self) -> None:
        policy = self._policy
        if policy.merge_every and self._rounds % policy.merge_every == 0:
            self._merging.start()
        if policy.keep_snapshots_s is not None and self._clock() - self._expired_at >= policy.expire_every_s:
            self._expired_at = self._clock()
            self._merging.wait()  # no snapshot names the files of a running merge
            self._export.table.expire(int((time.time() - policy.keep_snapshots_s) * 1000))
