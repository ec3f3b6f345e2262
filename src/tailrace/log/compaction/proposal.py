"""Proposal: compacted segments that somebody else has written, for the log's owner to check and put in place.

Whoever compacts a log without owning it (a Spark job beside a running broker) may read its sealed segments but change
nothing. It leaves files in the partition's folder whose names mean nothing to Apache Kafka:

    00000000000000000000.log.proposed   and the indexes, one segment for each group of segments
    compaction-proposal                 which segments become which, and what these were when they were read: written
                                        last, when all else is durable; without it the rest is nobody's
    compaction-proposal.taken           the same while it is being swapped in; found after a crash, it and the files
                                        that are left are thrown away, and what is swapped stays

The owner takes it group by group, in the order of the log, with the renames of `segment_swap.py`. It refuses the
whole if any segment is not what it was, if the log was cleaned meanwhile, or if not all of it may be cleaned. A later
group never goes in without the ones before it: a tombstone that went with it would bring older records back to life.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from itertools import zip_longest
from typing import Any, NamedTuple

from tailrace.log.compaction.cleaned_segment import cleaned_path
from tailrace.log.disk import file_names
from tailrace.log.disk.files import Files, join, write_atomically
from tailrace.log.segments.segment import SEGMENT_KINDS, Segment
from tailrace.log.segments.segment_list import SegmentList
from tailrace.model.ids import Offset
from tailrace.model.topic_config import TopicConfig

PROPOSAL = "compaction-proposal"
TAKEN = f"{PROPOSAL}.taken"
PROPOSED = ".proposed"
_VERSION = 1


class RefusedProposal(Exception):
    """A proposal that does not fit the log any more, or never did; says why. It has been thrown away."""


class OldSegment(NamedTuple):
    base_offset: Offset
    size: int
    modified_ms: int


class ProposedGroup(NamedTuple):
    """One new segment, and those whose place it takes; the first of them has its base offset."""

    old: tuple[OldSegment, ...]
    sizes: dict[str, int]  # of the new files, by kind

    @property
    def base_offset(self) -> Offset:
        return self.old[0].base_offset


class Proposal(NamedTuple):
    clean_before: Offset | None  # what the cleaner checkpoint said
    clean_after: Offset  # what it is to say: also where the range ends
    groups: tuple[ProposedGroup, ...]

    def to_json(self) -> bytes:
        groups = [{"old": [list(one) for one in group.old], "sizes": group.sizes} for group in self.groups]
        value = {"version": _VERSION, "before": self.clean_before, "after": self.clean_after, "groups": groups}
        return json.dumps(value, indent=1).encode()

    @classmethod
    def from_json(cls, data: bytes) -> Proposal:
        """What to_json gave; ValueError, KeyError, TypeError or IndexError if it is something else."""
        value: Any = json.loads(data)
        if value["version"] != _VERSION:
            raise ValueError(f"version {value['version']} is not known")
        groups = tuple(
            ProposedGroup(
                tuple(OldSegment(*map(int, one)) for one in group["old"]),
                {str(kind): int(size) for kind, size in group["sizes"].items()},
            )
            for group in value["groups"]
        )
        if not all(group.old and set(group.sizes) <= set(SEGMENT_KINDS) for group in groups):
            raise ValueError("a group without segments, or with files that no segment has")
        return cls(value["before"], int(value["after"]), groups)


def describe_old(files: Files, segments: Sequence[Segment]) -> tuple[OldSegment, ...]:
    return tuple(OldSegment(one.base_offset, one.size, files.modified_ms(one.log.path)) for one in segments)


def proposed_path(directory: str, base_offset: Offset, kind: str) -> str:
    return join(directory, file_names.segment_file(base_offset, kind) + PROPOSED)


def publish(files: Files, directory: str, proposal: Proposal) -> None:
    """Make the `.proposed` files, each durable, a proposal."""
    files.sync_directory(directory)
    write_atomically(files, join(directory, PROPOSAL), proposal.to_json())
    files.sync_directory(directory)


def is_waiting(files: Files, directory: str) -> bool:
    return files.exists(join(directory, PROPOSAL)) or files.exists(join(directory, TAKEN))


def discard(files: Files, directory: str) -> None:
    """Throw away what there is of a proposal."""
    names = [entry.name for entry in files.entries(directory) if not entry.is_directory]
    # What says what the others are goes last: then they are known for what they are until they are gone.
    for name in [*(name for name in names if name.endswith(PROPOSED)), PROPOSAL, TAKEN]:
        if name in names:
            files.remove(join(directory, name))
    files.sync_directory(directory)


def take(
    files: Files,
    directory: str,
    segments: SegmentList,
    config: TopicConfig,
    replace: Callable[[Sequence[Segment], Sequence[Segment]], None],
    *,
    clean_to: Offset | None,
    end: Offset,
) -> Offset | None:
    """Swap a waiting proposal in; up to where the log is clean now, None if nothing waits. RefusedProposal if not.

    `replace` puts new segments in the place of old ones; `clean_to` is what the cleaner checkpoint says, `end` where
    what may be cleaned ends. Nothing else may be cleaning the log.
    """
    if files.exists(join(directory, TAKEN)):
        discard(files, directory)
    if not files.exists(join(directory, PROPOSAL)):
        return None
    files.replace(join(directory, PROPOSAL), join(directory, TAKEN))
    files.sync_directory(directory)
    try:
        proposal = _read(files, directory)
        why_not = _misfit(files, directory, proposal, segments, clean_to, end)
        if why_not is not None:
            raise RefusedProposal(why_not)
        for group in proposal.groups:
            old = [segment for one in group.old if (segment := segments.get(one.base_offset)) is not None]
            replace([_move_in(files, directory, group, config)], old)
    finally:
        discard(files, directory)
    return proposal.clean_after


def _read(files: Files, directory: str) -> Proposal:
    try:
        return Proposal.from_json(files.read(join(directory, TAKEN)))
    except (ValueError, KeyError, TypeError, IndexError, FileNotFoundError) as error:
        raise RefusedProposal(f"its manifest cannot be read: {error}") from None


def _misfit(
    files: Files, directory: str, proposal: Proposal, segments: SegmentList, clean_to: Offset | None, end: Offset
) -> str | None:
    if proposal.clean_before != clean_to:
        return f"the log was clean up to {proposal.clean_before} then, and is up to {clean_to} now"
    if proposal.clean_after > end:
        return f"it reaches up to {proposal.clean_after}, and only {end} may be cleaned"
    proposed = [one for group in proposal.groups for one in group.old]
    found = describe_old(files, segments.sealed[: len(proposed)])
    for was, now in zip_longest(proposed, found):
        if was != now:
            return f"segment {was.base_offset} is not what it was"
    for group in proposal.groups:
        for kind, size in group.sizes.items():
            path = proposed_path(directory, group.base_offset, kind)
            if not files.exists(path) or files.size(path) != size:
                return f"{path} is not the {size} bytes that were written"
    return None


def _move_in(files: Files, directory: str, group: ProposedGroup, config: TopicConfig) -> Segment:
    """Give a group's files the place where the swap expects them; what a crash leaves there is thrown away."""
    for kind in group.sizes:
        source = proposed_path(directory, group.base_offset, kind)
        files.replace(source, cleaned_path(directory, group.base_offset, kind))
    files.sync_directory(directory)
    return Segment.open(files, directory, group.base_offset, config, suffix=file_names.CLEANED)
