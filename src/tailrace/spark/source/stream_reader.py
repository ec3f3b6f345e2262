"""LogStreamReader: the log as a stream of micro-batches.

Spark stores the offsets in its checkpoint. For each batch it calls `latestOffset` for the end of the batch, and
`partitions` for the tasks between two offsets; after a failure it calls `partitions` again with the same offsets. The
driver keeps one reader for the lifetime of a query; tasks have copies.

A new partition is read from its beginning. If a partition is deleted or truncated, records are lost: this is an error,
or with failOnDataLoss=false the lost records are skipped.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    ReadMinRows,
    SupportsTriggerAvailableNow,
)

from tailrace.model.ids import Offset, TopicPartition
from tailrace.spark.source.batch_reader import SliceTask, read_task
from tailrace.spark.source.errors import OffsetRangeLost, message_only
from tailrace.spark.source.group_commits import GroupCommits
from tailrace.spark.source.options import ReadOptions
from tailrace.spark.source.planning.admission import admitted, should_wait
from tailrace.spark.source.planning.data_loss import readable_ranges
from tailrace.spark.source.planning.offset_ranges import (
    Offsets,
    offsets_from_json,
    offsets_to_json,
)
from tailrace.spark.source.slice_reader import ReadPlan
from tailrace.spark.source.starting_offsets import starting_offsets
from tailrace.spark.source.transports.transport import Transport, open_transport

JsonOffset = dict[str, dict[str, int]]


class LogStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    def __init__(self, options: ReadOptions, plan: ReadPlan) -> None:
        self._options = options
        self._plan = plan
        self._transport: Transport | None = None
        self._commits: GroupCommits | None = None
        self._seen: dict[TopicPartition, Offset] | None = None
        self._last_batch_s: float | None = None  # the time of the last batch that was not delayed
        self._target: dict[TopicPartition, Offset] | None = None  # the end offsets of a Trigger.AvailableNow

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_transport": None, "_commits": None}

    @property
    def transport(self) -> Transport:
        if self._transport is None:
            self._transport = open_transport(self._options)
        return self._transport

    @message_only()
    def initialOffset(self) -> JsonOffset:  # noqa: N802
        transport, options = self.transport, self._options
        transport.refresh()
        partitions = transport.partitions(options.selection)
        return offsets_to_json(starting_offsets(options, partitions, transport))

    @message_only()
    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> JsonOffset:  # noqa: N802
        starts = offsets_from_json(start)
        latest = self._latest() if self._target is None else self._within_target(starts)
        self._check_loss(starts, latest)
        return offsets_to_json(self._limited(starts, latest, limit))

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        if self._options.max_offsets_per_trigger is not None:
            return ReadMaxRows(self._options.max_offsets_per_trigger)
        if self._options.min_offsets_per_trigger is not None:
            return ReadMinRows(self._options.min_offsets_per_trigger)
        return ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self._target = self._latest()

    def reportLatestOffset(self) -> JsonOffset | None:  # noqa: N802
        """Return the end offsets of the last query, before any limit, without another request."""
        return None if self._seen is None else offsets_to_json(self._seen)

    @message_only()
    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        starts, ends = offsets_from_json(start), offsets_from_json(end)
        moved = {partition: offset for partition, offset in ends.items() if starts.get(partition, 0) != offset}
        if not moved:
            return []
        transport = self.transport
        transport.refresh()
        fail = self._options.fail_on_data_loss
        there = set(transport.partitions(self._options.selection, missing_ok=True))
        for partition in sorted(set(moved) - there):
            if fail:
                raise OffsetRangeLost(
                    partition, starts.get(partition, 0), moved[partition], "the partition was deleted"
                )
            del moved[partition]
        begins = {partition: starts.get(partition, 0) for partition in moved}
        ranges = readable_ranges(begins, moved, transport, fail_on_data_loss=fail)
        return [SliceTask(found) for found in transport.slices(ranges, self._options)]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        return read_task(partition, self._plan)

    @message_only()
    def commit(self, end: dict[str, Any]) -> None:
        """Commit the offsets to the group of commitOffsetsToGroup, if set: Spark has processed the records before."""
        options = self._options
        if options.commit_group is None or options.wire is None:
            return
        if self._commits is None:
            self._commits = GroupCommits(options.commit_group, options.wire)
        self._commits.commit(offsets_from_json(end))

    def stop(self) -> None:
        if self._commits is not None:
            self._commits.close()
            self._commits = None
        if self._transport is not None:
            self._transport.close()
            self._transport = None

    def _latest(self) -> dict[TopicPartition, Offset]:
        transport = self.transport
        transport.refresh()
        self._seen = transport.latest(transport.partitions(self._options.selection, missing_ok=True))
        return self._seen

    def _within_target(self, starts: Offsets) -> dict[TopicPartition, Offset]:
        """Return the target, but not less than the current offsets."""
        assert self._target is not None
        return {partition: max(end, starts.get(partition, 0)) for partition, end in self._target.items()}

    def _check_loss(self, starts: Offsets, latest: Offsets) -> None:
        if not self._options.fail_on_data_loss:
            return
        for partition, start in sorted(starts.items()):
            if partition not in latest:
                raise OffsetRangeLost(partition, start, start + 1, "the partition was deleted")
            if latest[partition] < start:
                raise OffsetRangeLost(partition, latest[partition], start, f"the log now ends at {latest[partition]}")

    def _limited(self, starts: Offsets, latest: Offsets, limit: ReadLimit) -> Offsets:
        if isinstance(limit, ReadAllAvailable):
            return latest
        options, now_s = self._options, time.monotonic()
        minimum = options.min_offsets_per_trigger
        if minimum is not None and self._target is None and self._last_batch_s is not None:
            waited_ms = (now_s - self._last_batch_s) * 1000
            if should_wait(starts, latest, minimum, waited_ms, options.max_trigger_delay_ms):
                return starts
        self._last_batch_s = now_s
        return admitted(starts, latest, limit.max_rows) if isinstance(limit, ReadMaxRows) else latest
