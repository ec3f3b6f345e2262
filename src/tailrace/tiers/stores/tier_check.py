"""Compares the files of a remote store with the metadata of the cluster that uses it.

    orphan    files of a segment that the metadata does not have: a copy or a deletion that was not completed
    foreign   files of a topic that the metadata has never named. They may belong to another cluster
    upload    an upload to the bucket that was begun and not completed
    missing   a segment that can be read according to the metadata, and that lacks files

The store has to be listed before the metadata is read: a copy is in the metadata before its first file is written. So
nothing that a broker is copying at that time is reported. Segments that a broker copies or deletes are left to it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from enum import Enum
from typing import Final, NamedTuple

from tailrace.log.disk.files import Files, join
from tailrace.model.ids import Offset, TopicId, TopicPartition
from tailrace.tiers.remote_segment import RemoteSegment, RemoteSegmentState
from tailrace.tiers.stores import local_layout
from tailrace.tiers.stores.aiven import aiven_layout
from tailrace.tiers.stores.aiven.blobs import UNFINISHED
from tailrace.tiers.stores.view.tier_listing import NotATier, StoredPartition, find_partitions


class Kind(Enum):
    ORPHAN = "orphan"
    FOREIGN = "foreign"
    UPLOAD = "upload"
    MISSING = "missing"


class SegmentKey(NamedTuple):
    """The identity of a segment, as the names of its files have it."""

    topic_id: TopicId
    partition: int
    segment_id: str


class StoredFiles(NamedTuple):
    """The files of one segment in a store. `names` are paths; a manifest is the first."""

    key: SegmentKey
    partition: TopicPartition
    start_offset: Offset
    names: tuple[str, ...]
    is_complete: bool


class Finding(NamedTuple):
    kind: Kind
    partition: TopicPartition
    start_offset: Offset
    segment_id: str
    names: tuple[str, ...]


class OpenUpload(NamedTuple):
    """An upload that was begun and not completed, and the identity that it was begun with."""

    name: str
    upload_id: str


def list_store(files: Files, path: str) -> list[StoredFiles]:
    """Return the segments in a store, complete or not. An empty store has none."""
    try:
        partitions = find_partitions(files, path)
    except NotATier:
        return []
    return [found for partition in partitions for found in _segments(files, partition)]


def _segments(files: Files, partition: StoredPartition) -> Iterable[StoredFiles]:
    parse = aiven_layout.parse_object if partition.is_aiven else local_layout.parse_file
    names: dict[tuple[Offset, str], dict[str, str]] = {}
    for entry in files.entries(partition.folder):
        one = parse(entry.name.removesuffix(UNFINISHED))
        if one is not None and not entry.is_directory:
            suffix = one[2] + (UNFINISHED if entry.name.endswith(UNFINISHED) else "")
            names.setdefault((one[0], one[1]), {})[suffix] = join(partition.folder, entry.name)
    required = set(aiven_layout.KINDS) if partition.is_aiven else local_layout.REQUIRED
    for (start, identity), found in sorted(names.items()):
        paths = [found[suffix] for suffix in sorted(found, key=lambda one: (one != aiven_layout.MANIFEST, one))]
        key = SegmentKey(partition.topic_id, partition.partition.partition, identity)
        yield StoredFiles(key, partition.partition, start, tuple(paths), found.keys() >= required)


_READABLE: Final = RemoteSegmentState.COPY_SEGMENT_FINISHED


class TierCheck:
    """The metadata of a cluster: its segments by identity, and the ids of all topics that it has ever named."""

    def __init__(self, segments: Mapping[SegmentKey, RemoteSegment], topics: Collection[TopicId]) -> None:
        self._segments = segments
        self._topics = topics

    def findings(self, stored: Iterable[StoredFiles], uploads: Iterable[OpenUpload] = ()) -> list[Finding]:
        found: list[Finding] = []
        complete: set[SegmentKey] = set()
        for one in stored:
            if one.is_complete:
                complete.add(one.key)
            if one.key not in self._segments:
                kind = Kind.ORPHAN if one.key.topic_id in self._topics else Kind.FOREIGN
                found.append(Finding(kind, one.partition, one.start_offset, one.key.segment_id, one.names))
        found += [finding for upload in uploads if (finding := self._of_upload(upload)) is not None]
        for key, segment in self._segments.items():
            if segment.state is _READABLE and key not in complete:
                place = TopicPartition(segment.segment_id.topic, key.partition)
                found.append(Finding(Kind.MISSING, place, segment.start_offset, key.segment_id, ()))
        return sorted(found, key=lambda one: (one.kind.value, one.partition, one.start_offset, one.segment_id))

    def _of_upload(self, upload: OpenUpload) -> Finding | None:
        """Return the finding of an upload, unless a broker is copying the segment or the name is not of a segment."""
        folder, _, name = upload.name.rpartition("/")
        topic_folder, _, number = folder.rpartition("/")
        one, topic = aiven_layout.parse_object(name), aiven_layout.parse_topic(topic_folder.rpartition("/")[2])
        if one is None or topic is None or not number.isdecimal():
            return None
        if SegmentKey(topic[1], int(number), one.segment_id) in self._segments or topic[1] not in self._topics:
            return None
        partition = TopicPartition(topic[0], int(number))
        return Finding(Kind.UPLOAD, partition, one.start_offset, one.segment_id, (upload.name, upload.upload_id))
