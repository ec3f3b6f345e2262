"""TopicSource: the topics of an export, read from a cluster, from files, or from both.

With both, the cluster has the ends, and offsets of sealed segments are read from the files. So the first rounds of a
large topic come from files, and later rounds over the network, without a gap: both have the same offsets.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

from tailrace.model.ids import Offset, TopicPartition
from tailrace.spark.jobs.errors import JobError
from tailrace.spark.jobs.place import Place, as_job_errors
from tailrace.spark.source.options import Selection
from tailrace.spark.source.planning.offset_ranges import OffsetRange
from tailrace.spark.source.transports.files_transport import FilesTransport
from tailrace.spark.source.transports.topic_identity import TopicIdentity
from tailrace.spark.source.transports.transport import Slice

Offsets = Mapping[TopicPartition, Offset]


class TopicSource:
    """A context manager. `files` is a directory with segments of the topics of a cluster."""

    def __init__(
        self, place: Place, topics: Sequence[str], *, files: Place | None = None, read_committed: bool = True
    ) -> None:
        if files is not None and place.bootstrap is None:
            raise JobError(f"{place} is a directory already: a path of files is for the address of a cluster")
        if files is not None and files.path is None:
            raise JobError(f"{files} is not a directory")
        self.place = place
        self._files_place = files
        self._read_committed = read_committed
        self._selection = Selection(topics=tuple(topics))
        self._opened = ExitStack()
        self._main: Any = None
        self._sealed: FilesTransport | None = None

    def __enter__(self) -> TopicSource:
        self._main = self._opened.enter_context(self.place.opened(read_committed=self._read_committed))
        if self._files_place is not None:
            files = self._opened.enter_context(self._files_place.opened(read_committed=self._read_committed))
            assert isinstance(files, FilesTransport)
            self._sealed = files
        return self

    def __exit__(self, *error: object) -> None:
        self._opened.close()

    def refresh(self) -> None:
        """Drop cached listings, so that new records are seen."""
        self._main.refresh()
        if self._sealed is not None:
            self._sealed.refresh()

    def drop_files(self) -> None:
        """Read everything over the network from now on."""
        self._sealed = None

    # Topics

    def partitions(self) -> list[TopicPartition]:
        with as_job_errors():
            found: list[TopicPartition] = self._main.partitions(self._selection)
            return found

    def identities(self) -> dict[str, TopicIdentity]:
        """Return the ids of the topics. Raise JobError if the files are those of another topic."""
        with as_job_errors():
            main: dict[str, TopicIdentity] = self._main.identities(self._selection)
            if self._sealed is not None:
                for topic, there in self._sealed.identities(self._selection, missing_ok=True).items():
                    if there.differs(main[topic]):
                        raise JobError(
                            f"the files in {self._files_place} are not those of topic {topic} at {self.place}: "
                            f"topic id {there.topic_id or 'unknown'}, cluster id {there.cluster_id or 'unknown'}"
                        )
            return main

    # Offsets

    def earliest(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, Offset]:
        """Return the first offsets. They are those of the files, if the cluster continues without a gap."""
        with as_job_errors():
            found: dict[TopicPartition, Offset] = self._main.earliest(partitions)
        for partition, (first, end) in self._sealed_ranges(partitions).items():
            if first < found[partition] <= end:
                found[partition] = first
        return found

    def latest(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, Offset]:
        with as_job_errors():
            found: dict[TopicPartition, Offset] = self._main.latest(partitions)
            return found

    def _sealed_ranges(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, tuple[Offset, Offset]]:
        """Return the offsets of sealed segments with only decided transactions."""
        if self._sealed is None:
            return {}
        with as_job_errors():
            there = set(self._sealed.partitions(self._selection, missing_ok=True))
            known = [partition for partition in partitions if partition in there]
            first, decided = self._sealed.earliest(known), self._sealed.latest(known)
            sealed = self._sealed.sealed_ends(known)
        return {one: (first[one], min(sealed[one], decided[one])) for one in known}

    # Slices

    def slices(self, ranges: Sequence[OffsetRange], *, task_offsets: int, task_bytes: int) -> list[Slice]:
        """Cut ranges into slices: those of sealed segments are read from files, others from the main source."""
        from_files, others = _divide(ranges, self._sealed_ranges(wanted.partition for wanted in ranges))
        found: list[Slice] = []
        for transport, place, some in ((self._sealed, self._files_place, from_files), (self._main, self.place, others)):
            if not some:
                continue
            assert transport is not None
            assert place is not None
            options = replace(
                place.options(read_committed=self._read_committed),
                max_bytes_per_partition=task_bytes,
                max_records_per_partition=task_offsets if place.path is None else None,
            )
            with as_job_errors():
                found += transport.slices(some, options)
        return found

    def has_file_ranges(self, starts: Offsets) -> bool:
        """Return True if files have offsets that are not exported yet."""
        return any(
            first <= starts.get(partition, 0) < end
            for partition, (first, end) in self._sealed_ranges(list(starts)).items()
        )


def _divide(
    ranges: Iterable[OffsetRange], sealed: Mapping[TopicPartition, tuple[Offset, Offset]]
) -> tuple[list[OffsetRange], list[OffsetRange]]:
    """Divide ranges into those that sealed segments have, and others."""
    from_files, others = [], []
    for partition, start, end in ranges:
        first, cut = sealed.get(partition, (0, 0))
        cut = min(cut, end) if first <= start < cut else start
        if start < cut:
            from_files.append(OffsetRange(partition, start, cut))
        if cut < end:
            others.append(OffsetRange(partition, cut, end))
    return from_files, others
