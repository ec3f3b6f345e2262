"""Writes a compaction proposal without Spark: the local cleaner's groups, in the files that a job would leave."""

from __future__ import annotations

from tailrace.log.compaction.cleaned_segment import cleaned_path
from tailrace.log.compaction.cleaner import CleanerSettings, Cleaning
from tailrace.log.compaction.cleaner_range import find_dirty_range
from tailrace.log.compaction.proposal import Proposal, ProposedGroup, describe_old, proposed_path, publish
from tailrace.log.disk.files import Files
from tailrace.log.partition_log import PartitionLog
from tailrace.log.segments.segment import SEGMENT_KINDS


def propose(
    files: Files, log: PartitionLog, clean_to: int | None, now_ms: int, settings: CleanerSettings | None = None
) -> Proposal:
    cleaning = Cleaning(files, log, find_dirty_range(log, clean_to, now_ms), now_ms, settings)
    cleaning.build_map()
    groups = []
    for group in cleaning.groups():
        new = cleaning.write_group(group)
        new.release()
        sizes = {}
        for kind in SEGMENT_KINDS:
            path = cleaned_path(log.directory, new.base_offset, kind)
            if files.exists(path):
                sizes[kind] = files.size(path)
                files.replace(path, proposed_path(log.directory, new.base_offset, kind))
        groups.append(ProposedGroup(describe_old(files, group), sizes))
    proposal = Proposal(clean_to, cleaning.end_offset, tuple(groups))
    publish(files, log.directory, proposal)
    return proposal
