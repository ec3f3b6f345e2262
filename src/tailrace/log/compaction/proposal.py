"""Proposal: compacted segments that a job has written, for the log's owner to check and swap in.

A job that does not own the log (a Spark job beside a running broker) may read its sealed segments but change nothing.
The job leaves files in the partition's folder whose names Apache Kafka ignores:

    00000000000000000000.log.proposed   and the indexes, one segment for each group of segments
    compaction-proposal                 the old and new segments, and the state of the old ones when they were read;
                                        written last, when all other files are durable; without it they are ignored
    compaction-proposal.taken           the same file while segments are swapped in; if it is found after a crash, the
                                        remaining files are deleted, and the swapped segments stay

The owner swaps group by group, in the order of the log, with the renames of `segment_swap.py`. It refuses the whole
proposal if a segment has changed, if the log was cleaned meanwhile, or if a part of it may not be cleaned. A later
group is never swapped in without the earlier ones. Otherwise a tombstone could be removed while older records of its
key remain.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from itertools import zip_longest
from typing import NamedTuple

from tailrace.log.compaction.cleaned_segment import cleaned_path
from tailrace.log.disk import file_names
from tailrace.log.disk.checkpoints import parse_json
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
    """A proposal that does not fit the log, with the reason. It has been deleted."""


class OldSegment(NamedTuple):
    base_offset: Offset
    size: int
    modified_ms: int


class ProposedGroup(NamedTuple):
    """One new segment, and the segments that it replaces. The first of them has the same base offset."""

    old: tuple[OldSegment, ...]
    sizes: dict[str, int]  # of the new files, by kind

    @property
    def base_offset(self) -> Offset:
        return self.old[0].base_offset


class Proposal(NamedTuple):
    clean_before: Offset | None  # from the cleaner checkpoint when the job started
    clean_after: Offset  # for the cleaner checkpoint; also the end of the range
    groups: tuple[ProposedGroup, ...]

    def to_json(self) -> bytes:
        groups = [{"old": [list(one) for one in group.old], "sizes": group.sizes} for group in self.groups]
        value = {"version": _VERSION, "before": self.clean_before, "after": self.clean_after, "groups": groups}
        return json.dumps(value, indent=1).encode()

    @classmethod
    def from_json(cls, data: bytes) -> Proposal:
        """Decode the output of to_json. Raise ValueError, KeyError, TypeError or AttributeError for other data."""
        value = parse_json(data)
        if value["version"] != _VERSION:
            raise ValueError(f"version {value['version']} is unknown")
        groups = tuple(
            ProposedGroup(
                tuple(OldSegment(*map(int, one)) for one in group["old"]),
                {str(kind): int(size) for kind, size in group["sizes"].items()},
            )
            for group in value["groups"]
        )
        if not all(group.old and set(group.sizes) <= set(SEGMENT_KINDS) for group in groups):
            raise ValueError("a group has no segments, or files of an unknown kind")
        return cls(value["before"], int(value["after"]), groups)


def describe_old(files: Files, segments: Sequence[Segment]) -> tuple[OldSegment, ...]:
    return tuple(OldSegment(one.base_offset, one.size, files.modified_ms(one.log.path)) for one in segments)


def proposed_path(directory: str, base_offset: Offset, kind: str) -> str:
    return join(directory, file_names.segment_file(base_offset, kind) + PROPOSED)


def publish(files: Files, directory: str, proposal: Proposal) -> None:
    """Publish the `.proposed` files, each durable, as a proposal."""
    files.sync_directory(directory)
    write_atomically(files, join(directory, PROPOSAL), proposal.to_json())
    files.sync_directory(directory)


def is_waiting(files: Files, directory: str) -> bool:
    return files.exists(join(directory, PROPOSAL)) or files.exists(join(directory, TAKEN))


def discard(files: Files, directory: str) -> None:
    """Delete all files of a proposal."""
    names = [entry.name for entry in files.entries(directory) if not entry.is_directory]
    # The manifest goes last, so that the other files can be recognized until they are deleted.
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
    """Swap in a waiting proposal. Return the offset up to which the log is clean, or None without a proposal. Raise
    RefusedProposal if it does not fit.

    `replace` puts new segments in the place of old ones. `clean_to` is the offset in the cleaner checkpoint, `end` the
    end of the range that may be cleaned. Nothing else may clean the log at the same time.
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
    except (ValueError, KeyError, TypeError, AttributeError, FileNotFoundError) as error:
        raise RefusedProposal(f"the manifest of the proposal cannot be read: {error}") from None


def _misfit(
    files: Files, directory: str, proposal: Proposal, segments: SegmentList, clean_to: Offset | None, end: Offset
) -> str | None:
    if proposal.clean_before != clean_to:
        return f"the log is clean up to {clean_to}, but was up to {proposal.clean_before} for the proposal"
    if proposal.clean_after > end:
        return f"the proposal ends at {proposal.clean_after}, but the log may be cleaned up to {end}"
    proposed = [one for group in proposal.groups for one in group.old]
    found = describe_old(files, segments.sealed[: len(proposed)])
    for was, now in zip_longest(proposed, found):
        if was != now:
            return f"segment {was.base_offset} has changed since the proposal"
    for group in proposal.groups:
        for kind, size in group.sizes.items():
            path = proposed_path(directory, group.base_offset, kind)
            if not files.exists(path) or files.size(path) != size:
                return f"{path} does not have the {size} bytes of the proposal"
    return None


def _move_in(files: Files, directory: str, group: ProposedGroup, config: TopicConfig) -> Segment:
    """Rename a group's files to the names that the swap expects. Files that a crash has left there are deleted."""
    for kind in group.sizes:
        source = proposed_path(directory, group.base_offset, kind)
        files.replace(source, cleaned_path(directory, group.base_offset, kind))
    files.sync_directory(directory)
    return Segment.open(files, directory, group.base_offset, config, suffix=file_names.CLEANED)
