"""Transport: the interface to segment files, or to any Kafka cluster over the network.

On the driver, a transport lists partitions with their start and end offsets, and cuts ranges into slices. A slice is
sent to a task, where it puts the batches with its offsets into the columns.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from tailrace.model.ids import TopicPartition
from tailrace.records.raw_batches import BatchCollector
from tailrace.spark.source.options import ReadOptions, Selection
from tailrace.spark.source.planning.offset_ranges import Bounds, OffsetRange
from tailrace.spark.source.transports.topic_identity import TopicIdentity


class Slice(Protocol):
    """A range of one partition that a task reads."""

    @property
    def range(self) -> OffsetRange: ...
    def feed(self, columns: BatchCollector, *, fail_on_data_loss: bool) -> Iterator[None]:
        """Put the batches of the range into the columns. Yield whenever the columns are full, then continue."""


class Transport(Bounds, Protocol):
    def partitions(self, selection: Selection, *, missing_ok: bool = False) -> list[TopicPartition]:
        """Return the selected partitions that exist.

        Raise UnknownLog if a named topic or partition does not exist, unless missing_ok is set, as it is for a stream.
        """

    def identities(self, selection: Selection, *, missing_ok: bool = False) -> dict[str, TopicIdentity]:
        """Return the ids of the selected topics and their cluster."""

    def slices(self, ranges: Sequence[OffsetRange], options: ReadOptions) -> Sequence[Slice]: ...

    def refresh(self) -> None:
        """Drop cached listings and metadata, so that the next query sees the current state."""

    def close(self) -> None: ...


def open_transport(options: ReadOptions) -> Transport:
    """Return a transport for files if there is a path, with offsets of the cluster if it is given too.

    With the path of a remote store, older records are read from there, and the others from the cluster. Without a
    path, the transport reads from the cluster.
    """
    from tailrace.object_stores.opening import files_of
    from tailrace.object_stores.store_address import Place
    from tailrace.spark.source.transports.files_transport import FilesTransport
    from tailrace.spark.source.transports.tier_transport import TierTransport
    from tailrace.spark.source.transports.wire_transport import WireTransport

    wire = None if options.wire is None else WireTransport(options.wire, read_committed=options.read_committed)
    if options.remote_path is not None:
        files = files_of(Place(options.remote_path, options.store))
        return TierTransport(options.remote_path, files, wire, read_committed=options.read_committed)
    if options.path is not None:
        files = files_of(Place(options.path, options.store))
        return FilesTransport(options.path, read_committed=options.read_committed, cluster=wire, files=files)
    assert wire is not None
    return wire
