"""Opens the view of a store: chooses the segments of each partition, and names their files as in a log on disk."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from tailrace.log.disk import file_names
from tailrace.log.disk.checkpoints import CorruptCheckpoint
from tailrace.log.disk.files import Files, join
from tailrace.log.leader_epochs import LeaderEpochs
from tailrace.log.segments.indexes.index_file import CorruptIndex
from tailrace.log.segments.segment import Segment
from tailrace.model.ids import LeaderEpoch, Offset, TopicId, TopicPartition
from tailrace.model.topic_config import TopicConfig
from tailrace.records.batch import CorruptBatch
from tailrace.tiers.remote_segment import RemoteSegment
from tailrace.tiers.stores import local_layout
from tailrace.tiers.stores.aiven import aiven_layout
from tailrace.tiers.stores.remote_store import IndexKind
from tailrace.tiers.stores.view.cut_indexes import cut_index, last_time_entry
from tailrace.tiers.stores.view.part_files import Source
from tailrace.tiers.stores.view.segment_chain import Link, Span, chain, newest
from tailrace.tiers.stores.view.tier_files import Content, StoredChunks, StoredRange, TierFiles
from tailrace.tiers.stores.view.tier_listing import (
    StoredPartition,
    StoredSegment,
    find_partitions,
    run_together,
)

_CUT = (file_names.OFFSET_INDEX, file_names.TIME_INDEX, file_names.TRANSACTION_INDEX)
_EPOCHS = ".epochs"  # of one segment, in the view of that segment alone


@dataclass(slots=True)
class TierView:
    """The view of a store, its partitions' chosen segments, and what was left out."""

    files: TierFiles
    links: dict[TopicPartition, list[Link]] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Known:
    """The segments of a partition that the cluster has copied completely, by their ids, and the offsets to read."""

    topic_id: TopicId
    segments: Mapping[str, RemoteSegment]
    start: Offset
    end: Offset


def open_view(
    files: Files,
    path: str,
    *,
    is_wanted: Callable[[TopicPartition], bool] = lambda one: True,
    known: Callable[[TopicPartition], Known] | None = None,
) -> TierView:
    """Return the view of a store or of one partition's folder. Raise NotATier or OSError if there is none.

    `known` gives the segments that the cluster's metadata has. Without it all complete segments count.
    """
    stored = [one for one in find_partitions(files, path) if is_wanted(one.partition)]
    by_partition: dict[TopicPartition, list[StoredPartition]] = {}
    for one in stored:
        by_partition.setdefault(one.partition, []).append(one)
    view = TierView(TierFiles(files, path, {}))
    made: dict[TopicPartition, tuple[dict[str, Source], list[Link]]] = {}
    for partition, folders in by_partition.items():
        segments = None if known is None else known(partition)
        chosen = _chosen(files, folders, segments, view.problems)
        if chosen is not None:
            _open_partition(files, chosen, segments, made)
            view.problems += chosen.problems
    folders_made = {join(path, str(partition)): made[partition][0] for partition in by_partition if partition in made}
    view.files = TierFiles(files, path, folders_made)
    view.links = {partition: links for partition, (_, links) in made.items()}
    return view


def _chosen(
    files: Files, folders: list[StoredPartition], known: Known | None, problems: list[str]
) -> StoredPartition | None:
    """Return the folder of the topic: of the id that the cluster knows, else the one with the newest segment."""
    if known is not None:
        return next((one for one in folders if one.topic_id == known.topic_id), None)
    if len(folders) == 1:
        return folders[0]

    def age(one: StoredPartition) -> int:
        logs = [segment for segment in one.segments(files) if file_names.LOG in segment.suffixes]
        return max((files.modified_ms(segment.stem + file_names.LOG) for segment in logs), default=-1)

    folders = sorted(folders, key=age)
    for other in folders[:-1]:
        problems.append(f"{other.folder} is of an older topic of the same name, and was left out")
    return folders[-1]


def _open_partition(
    files: Files,
    stored: StoredPartition,
    known: Known | None,
    made: dict[TopicPartition, tuple[dict[str, Source], list[Link]]],
) -> None:
    complete = {one.segment_id: one for one in stored.complete(files)}
    if known is None:
        found = {one.segment_id: one for one in stored.with_manifests(files, list(complete.values()))}
        single = {name: SingleSegment(files, stored, one) for name, one in found.items()}
        spans: dict[str, Span] = {}
        run_together(files, (partial(_add_span, one, spans, stored.problems) for one in single.values()))
        top = newest(spans.values())
        lineage = () if top is None else single[str(top.key)].lineage()
        links = chain(spans.values(), lineage)
    else:
        # The cluster's metadata is enough to choose the segments. Only those that will be read are opened.
        complete = {name: one for name, one in complete.items() if name in known.segments}
        spans = {name: _known_span(name, known.segments[name]) for name in complete}
        top = newest(spans.values())
        lineage = ()
        if top is not None:
            newest_one = stored.with_manifests(files, [complete[str(top.key)]])
            lineage = SingleSegment(files, stored, newest_one[0]).lineage() if newest_one else ()
        links = [one for one in chain(spans.values(), lineage) if one.start < known.end and known.start < one.end]
        chosen = stored.with_manifests(files, [complete[str(one.key)] for one in links])
        single = {one.segment_id: SingleSegment(files, stored, one) for one in chosen}
        links = [one for one in links if one.key in single]
    names: dict[str, Source] = {}
    for link in links:
        names.update(single[str(link.key)].sources(link))
    if lineage:
        names[file_names.LEADER_EPOCH_CHECKPOINT] = Content(_checkpoint(lineage))
    names[file_names.PARTITION_METADATA] = Content(f"version: 0\ntopic_id: {stored.topic_id}".encode())
    made[stored.partition] = names, links


def _known_span(name: str, segment: RemoteSegment) -> Span:
    return Span(name, segment.start_offset, segment.end_offset + 1, segment.leader_epochs)


def _add_span(one: SingleSegment, spans: dict[str, Span], problems: list[str]) -> None:
    try:
        spans[one.stored.segment_id] = one.span()
    except (CorruptBatch, CorruptIndex, CorruptCheckpoint) as error:
        problems.append(f"{one.stored.stem} cannot be read and was left out: {error}")
    except FileNotFoundError:
        problems.append(f"{one.stored.stem} was deleted during the listing")


class SingleSegment:
    """One stored segment, with the names of a log that has only this segment."""

    def __init__(self, files: Files, partition: StoredPartition, stored: StoredSegment) -> None:
        self.stored = stored
        self._names = _aiven_sources(files, stored) if partition.is_aiven else _local_sources(files, stored)
        self._view = TierFiles(files, stored.stem, {stored.stem: self._names})

    def opened(self) -> Segment:
        return Segment.open(self._view, self.stored.stem, self.stored.start_offset, TopicConfig(), read_only=True)

    def lineage(self) -> list[tuple[LeaderEpoch, Offset]]:
        """Return the leader epochs from the start of the log to the end of the segment."""
        checkpoint = LeaderEpochs(self._view, join(self.stored.stem, _EPOCHS))
        checkpoint.load()
        return [(entry.epoch, entry.start_offset) for entry in checkpoint.entries]

    def span(self) -> Span:
        if self.stored.manifest is not None:
            return _known_span(self.stored.segment_id, self.stored.manifest.segment)
        start, end = self.stored.start_offset, self.opened().next_offset()
        rows = self.lineage()
        following = [first for _, first in rows[1:]] + [end]
        inside = [
            (epoch, max(first, start))
            for (epoch, first), next_first in zip(rows, following, strict=True)
            if next_first > start and first < end
        ]
        return Span(self.stored.segment_id, start, end, tuple(inside))

    def sources(self, link: Link) -> dict[str, Source]:
        """Return the files of the segment, cut at the end of the link."""
        base = self.stored.start_offset
        names: dict[str, Source] = {
            file_names.segment_file(base, kind): self._names[file_names.segment_file(base, kind)]
            for kind in (file_names.LOG, *_CUT)
            if file_names.segment_file(base, kind) in self._names
        }
        if not link.is_cut:
            snapshot = self._names.get(file_names.PRODUCER_SNAPSHOT)
            if snapshot is not None:
                names[file_names.segment_file(link.end, file_names.PRODUCER_SNAPSHOT)] = snapshot
            return names
        segment = self.opened()
        header = segment.find(link.end)
        if header is None:
            return names
        log = names[file_names.segment_file(base, file_names.LOG)]
        assert isinstance(log, StoredRange | StoredChunks)
        names[file_names.segment_file(base, file_names.LOG)] = (
            StoredRange(log.stored_path, log.start, header.position)
            if isinstance(log, StoredRange)
            else StoredChunks(log.stored_path, log.chunks, header.position)
        )
        for kind in _CUT:
            name = file_names.segment_file(base, kind)
            if name in names:
                data = cut_index(kind, self._view.read(join(self.stored.stem, name)), base, link.end)
                if kind == file_names.TIME_INDEX:
                    data += last_time_entry(segment, data, link.end)
                names[name] = Content(data)
        return names


def _local_sources(files: Files, stored: StoredSegment) -> dict[str, Source]:
    names: dict[str, Source] = {}
    for kind in stored.suffixes:
        path = stored.stem + kind
        if kind == local_layout.EPOCHS:
            name = _EPOCHS
        elif kind == file_names.PRODUCER_SNAPSHOT:
            name = kind
        else:
            name = file_names.segment_file(stored.start_offset, kind)
        names[name] = StoredRange(path, 0, files.size(path))
    return names


def _aiven_sources(files: Files, stored: StoredSegment) -> dict[str, Source]:
    manifest = stored.manifest
    assert manifest is not None
    log, indexes = stored.stem + aiven_layout.LOG, stored.stem + aiven_layout.INDEXES
    base = stored.start_offset
    chunks = manifest.chunks
    names: dict[str, Source] = {
        file_names.segment_file(base, file_names.LOG): StoredRange(log, 0, chunks.file_size)
        if chunks.stored_sizes is None
        else StoredChunks(log, chunks, chunks.file_size)
    }
    for kind, (position, size) in manifest.indexes.items():
        suffix = local_layout.SUFFIXES[kind]
        whole = {IndexKind.LEADER_EPOCH: _EPOCHS, IndexKind.PRODUCER_SNAPSHOT: suffix}
        name = whole.get(kind) or file_names.segment_file(base, suffix)
        names[name] = StoredRange(indexes, position, size) if size else Content(b"")
    return names


def _checkpoint(rows: Sequence[tuple[LeaderEpoch, Offset]]) -> bytes:
    lines: Iterable[object] = ("0", len(rows), *(f"{epoch} {start}" for epoch, start in rows))
    return "".join(f"{line}\n" for line in lines).encode()
