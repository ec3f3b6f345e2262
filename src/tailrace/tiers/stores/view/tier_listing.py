"""Finds the segments of a store in its folders, in either layout. Segments that lack a file are left out and counted.

A path is the root of a store, or the folder of one partition.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial

from tailrace.log.disk import file_names
from tailrace.log.disk.files import Entry, Files, RemoteFiles, join
from tailrace.model.ids import Offset, TopicId, TopicPartition
from tailrace.tiers.stores import local_layout
from tailrace.tiers.stores.aiven import aiven_layout
from tailrace.tiers.stores.aiven.chunk_index import WrongManifest
from tailrace.tiers.stores.aiven.manifest import MANIFEST_MAX, Manifest, parse_manifest


class NotATier(Exception):
    """A folder without remote segments."""


@dataclass(frozen=True, slots=True)
class StoredSegment:
    """A segment in the folders of a store: the common start of its files' names, and their suffixes."""

    stem: str
    start_offset: Offset
    segment_id: str
    suffixes: frozenset[str]
    manifest: Manifest | None = None

    @property
    def is_complete(self) -> bool:
        if aiven_layout.MANIFEST in self.suffixes or aiven_layout.INDEXES in self.suffixes:
            return self.suffixes >= set(aiven_layout.KINDS)
        return self.suffixes >= local_layout.REQUIRED


@dataclass(slots=True)
class StoredPartition:
    """A partition's folder in a store."""

    folder: str
    partition: TopicPartition
    topic_id: TopicId
    is_aiven: bool
    problems: list[str] = field(default_factory=list)

    def segments(self, files: Files) -> list[StoredSegment]:
        """Return the segments in order of their offsets, complete or not, without reading any file."""
        found: dict[tuple[Offset, str], set[str]] = {}
        parse = aiven_layout.parse_object if self.is_aiven else local_layout.parse_file
        for entry in files.entries(self.folder):
            one = parse(entry.name)
            if one is not None and not entry.is_directory:
                found.setdefault((one[0], one[1]), set()).add(one[2])
        return [
            StoredSegment(join(self.folder, f"{start:020d}-{identity}"), start, identity, frozenset(suffixes))
            for (start, identity), suffixes in sorted(found.items())
        ]

    def complete(self, files: Files) -> list[StoredSegment]:
        """Return the segments that lack no file. The others are noted in `problems`."""
        complete = []
        for one in self.segments(files):
            if one.is_complete:
                complete.append(one)
            else:
                self.problems.append(f"{one.stem} is incomplete and was left out")
        return complete

    def with_manifests(self, files: Files, complete: list[StoredSegment]) -> list[StoredSegment]:
        """Return the segments whose manifests can be used. The others are noted in `problems`."""
        if not self.is_aiven:
            return complete
        read: dict[str, StoredSegment] = {}
        run_together(files, (partial(self._with_manifest, files, one, read) for one in complete))
        return [read[one.stem] for one in complete if one.stem in read]

    def _with_manifest(self, files: Files, one: StoredSegment, read: dict[str, StoredSegment]) -> None:
        path = one.stem + aiven_layout.MANIFEST
        try:
            if files.size(path) > MANIFEST_MAX:
                raise WrongManifest(f"it has more than {MANIFEST_MAX:,} bytes")
            manifest = parse_manifest(files.read(path))
        except WrongManifest as error:
            self.problems.append(f"{path} cannot be used: {error}")
        except FileNotFoundError:
            self.problems.append(f"{one.stem} was deleted during the listing")
        else:
            read[one.stem] = StoredSegment(one.stem, one.start_offset, one.segment_id, one.suffixes, manifest)


def run_together(files: Files, work: Iterable[partial[None]]) -> None:
    """Run functions that mostly wait for a store, in parallel if the files are remote."""
    if isinstance(files, RemoteFiles):
        files.run_together(work)
    else:
        for one in work:
            one()


def find_partitions(files: Files, path: str) -> list[StoredPartition]:
    """Return the partitions of a store, or the one of a partition's folder. Raise NotATier if there are none."""
    entries = files.entries(path)
    one = _partition_of(path, entries)
    if one is not None:
        return [one]
    names = {entry.name for entry in entries if entry.is_directory}
    if local_layout.ROOT_FOLDER in names:
        path = join(path, local_layout.ROOT_FOLDER)
        names = {entry.name for entry in files.entries(path) if entry.is_directory}
    found = [*_local(path, names), *_aiven(files, path, names)]
    if not found:
        raise NotATier(
            f"{path} has no remote segments: neither folders as of Kafka's LocalTieredStorage "
            "(topic-partition-id) nor as of Aiven's plugin (topic-id/partition)"
        )
    return sorted(found, key=lambda one: (one.partition, one.folder))


def _partition_of(path: str, entries: list[Entry]) -> StoredPartition | None:
    """Return the partition if the path is its folder."""
    parent, _, name = path.rpartition("/")
    local = local_layout.parse_folder(name)
    if local is not None and any(local_layout.parse_file(entry.name) for entry in entries):
        return StoredPartition(path, local.partition, local.topic_id, is_aiven=False)
    topic = aiven_layout.parse_topic(parent.rpartition("/")[2])
    if topic is not None and _is_number(name) and any(aiven_layout.parse_object(entry.name) for entry in entries):
        return StoredPartition(path, TopicPartition(topic[0], int(name)), topic[1], is_aiven=True)
    return None


def _local(path: str, names: Iterable[str]) -> list[StoredPartition]:
    found = [(name, local_layout.parse_folder(name)) for name in names]
    return [
        StoredPartition(join(path, name), one.partition, one.topic_id, is_aiven=False)
        for name, one in found
        if one is not None
    ]


def _aiven(files: Files, path: str, names: Iterable[str]) -> list[StoredPartition]:
    found = []
    for name in sorted(names):
        topic = aiven_layout.parse_topic(name)
        if topic is None:
            continue
        with suppress(FileNotFoundError):
            for entry in files.entries(join(path, name)):
                if entry.is_directory and _is_number(entry.name):
                    folder = join(path, name, entry.name)
                    partition = TopicPartition(topic[0], int(entry.name))
                    found.append(StoredPartition(folder, partition, topic[1], is_aiven=True))
    return found


def _is_number(name: str) -> bool:
    return name.isascii() and name.isdigit() and len(name) <= 10 and int(name) < 2**31


def looks_like_tier(files: Files, path: str) -> bool:
    """Return True if a folder has remote segments, and is not a data directory."""
    try:
        entries = files.entries(path)
    except OSError:
        return False
    names = {entry.name for entry in entries}
    if file_names.META_PROPERTIES in names or any(file_names.parse_segment_file(name) for name in names):
        return False
    try:
        return bool(find_partitions(files, path))
    except (NotATier, OSError):
        return False
