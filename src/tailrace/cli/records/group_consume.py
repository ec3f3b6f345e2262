"""`tailrace consume --group`: read the partitions that a consumer group assigns, and commit what was printed.

Offsets are committed after their records are printed, at least every five seconds and at the end. So a record may be
printed again after a crash, but none is skipped. Without --follow the command ends where the assigned partitions ended
when they were assigned.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Final

from tailrace.cli.records.record_printer import RecordPrinter
from tailrace.client.batches import FetchOptions, fetch
from tailrace.client.cluster.cluster_client import ClusterClient
from tailrace.client.cluster.coordinators import Coordinators
from tailrace.client.errors import OffsetOutOfRange
from tailrace.client.groups.group_member import GroupMember
from tailrace.client.groups.group_offsets import committed_offsets
from tailrace.client.offsets import earliest_offsets, latest_offsets
from tailrace.model.ids import Offset, TopicPartition

COMMIT_S: Final = 5.0
_REBALANCE_WAIT_S: Final = 0.5
Starts = Callable[[list[TopicPartition]], dict[TopicPartition, Offset]]


class GroupReader:
    """Reads as a member of a group. `starts` gives the first offsets of partitions without a committed offset."""

    def __init__(
        self,
        cluster: ClusterClient,
        member: GroupMember,
        group: str,
        starts: Starts,
        fetch_options: FetchOptions,
        printer: RecordPrinter,
    ) -> None:
        self._cluster = cluster
        self._member = member
        self._group = group
        self._starts = starts
        self._fetch_options = fetch_options
        self._printer = printer
        self._positions: dict[TopicPartition, Offset] = {}
        self._ends: dict[TopicPartition, Offset] = {}
        self._committed: dict[TopicPartition, Offset] = {}
        self._next_commit_s = 0.0

    def run(self, *, follow: bool) -> None:
        try:
            while self._printer.left:
                if self._member.keep_alive():
                    self._take_assignment()
                if not follow and all(offset >= self._ends[one] for one, offset in self._positions.items()):
                    break
                self._read_once()
                if time.monotonic() >= self._next_commit_s:
                    self._commit()
        finally:
            self._commit()

    def _take_assignment(self) -> None:
        partitions = self._member.partitions
        noted = committed_offsets(Coordinators(self._cluster), self._group)
        known = {one: noted[one].offset for one in partitions if one in noted}
        missing = [one for one in partitions if one not in known]
        self._positions = {**known, **(self._starts(missing) if missing else {})}
        self._committed = dict(known)
        self._ends = latest_offsets(self._cluster, partitions, self._fetch_options.isolation) if partitions else {}
        self._next_commit_s = time.monotonic() + COMMIT_S

    def _read_once(self) -> None:
        if not self._positions:
            time.sleep(_REBALANCE_WAIT_S)  # the group has more members than partitions
            return
        try:
            found = fetch(self._cluster, self._positions, self._fetch_options)
        except OffsetOutOfRange as error:
            self._reset(error.subject)
            return
        for partition, fetched in found.items():
            for batch in fetched.batches(check_crcs=self._fetch_options.check_crcs):
                stopped_at = self._printer.show(partition, batch, self._positions[partition])
                if stopped_at is not None:
                    self._positions[partition] = stopped_at
                    return
            self._positions[partition] = fetched.next_position(self._positions[partition])
        sys.stdout.flush()

    def _reset(self, subject: str) -> None:
        """Continue at the first offset of a partition whose committed offset is no longer in the log."""
        partition = next(one for one in self._positions if str(one) == subject)
        earliest = earliest_offsets(self._cluster, [partition])[partition]
        is_deleted = self._positions[partition] < earliest
        self._positions[partition] = earliest if is_deleted else latest_offsets(self._cluster, [partition])[partition]

    def _commit(self) -> None:
        sys.stdout.flush()  # records are printed before their offsets are committed
        changed = {one: at for one, at in self._positions.items() if self._committed.get(one) != at}
        self._next_commit_s = time.monotonic() + COMMIT_S
        if changed and self._member.commit(changed):
            self._committed.update(changed)


def consume_group(
    cluster: ClusterClient,
    target: tuple[str, str],
    starts: Starts,
    fetch_options: FetchOptions,
    printer: RecordPrinter,
    *,
    follow: bool,
) -> None:
    """Read a topic as a member of a group. `target` is the group and the topic."""
    group, topic = target
    with GroupMember(Coordinators(cluster), group, topic) as member:
        GroupReader(cluster, member, group, starts, fetch_options, printer).run(follow=follow)
