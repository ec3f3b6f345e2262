"""Transport: where batches come from. Segment files, or any Kafka cluster over the wire, behind one planner and kernel.

A transport says on the driver which partitions there are, where they start and end, and how a range is cut into slices.
A slice travels to a task, where it feeds the columns with the batches that hold its offsets.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from tailrace.model.ids import TopicPartition
from tailrace.records.raw_batches import BatchTaker
from tailrace.spark.source.options import ReadOptions, Selection
from tailrace.spark.source.planning.offset_ranges import Bounds, OffsetRange


class Slice(Protocol):
    """A range of one partition that a task reads."""

    @property
    def range(self) -> OffsetRange: ...
    def feed(self, columns: BatchTaker, *, fail_on_data_loss: bool) -> Iterator[None]:
        """Put the batches of the range into the columns; stops to be gone on with whenever the columns are full."""


class Transport(Bounds, Protocol):
    def partitions(self, selection: Selection, *, missing_ok: bool = False) -> list[TopicPartition]:
        """What is selected and there. A topic or partition that was named and is not there is UnknownLog, unless it
        may be missing, as one may that a stream has been reading."""

    def slices(self, ranges: Sequence[OffsetRange], options: ReadOptions) -> Sequence[Slice]: ...

    def look_again(self) -> None:
        """Forget what was seen: the next question is about now."""

    def close(self) -> None: ...


def open_transport(options: ReadOptions) -> Transport:
    """Files where a path is given, with bounds from the cluster if that is given too; the wire otherwise."""
    from tailrace.object_stores.address import Place
    from tailrace.object_stores.opening import files_of
    from tailrace.spark.source.transports.files_transport import FilesTransport
    from tailrace.spark.source.transports.wire_transport import WireTransport

    wire = None if options.wire is None else WireTransport(options.wire, read_committed=options.read_committed)
    if options.path is not None:
        files = files_of(Place(options.path, options.store))
        return FilesTransport(options.path, read_committed=options.read_committed, cluster=wire, files=files)
    assert wire is not None
    return wire
