"""Swaps a proposal in if no broker runs. The caller holds the directory's `.lock` and acts like the broker."""

from __future__ import annotations

from collections.abc import Sequence

from tailrace.log.compaction.proposal import RefusedProposal, take
from tailrace.log.disk import file_names
from tailrace.log.disk.files import DiskFiles, Files, join
from tailrace.log.segments.segment import Segment
from tailrace.log.segments.segment_list import SegmentList
from tailrace.log.segments.segment_swap import swap_segments
from tailrace.model.ids import Offset
from tailrace.model.topic_config import TopicConfig
from tailrace.spark.jobs.errors import JobError


def swap_in(
    directory: str, config: TopicConfig, clean_to: Offset | None, end: Offset, files: Files | None = None
) -> None:
    """Swap in the proposal in a partition's folder. No other process may have the log open for writing."""
    files = files or DiskFiles()
    segments = SegmentList()
    for entry in files.entries(directory):
        parsed = file_names.parse_segment_file(entry.name)
        if parsed and parsed[1] == file_names.LOG and not parsed[2]:
            segments.add(Segment.open(files, directory, parsed[0], config))

    def replace(new: Sequence[Segment], old: Sequence[Segment]) -> None:
        swap_segments(files, directory, segments, new, old)
        kept = {segment.base_offset for segment in new}
        for segment in old:
            segment.release()
            segment.remove_files()
            if segment.base_offset not in kept:
                files.remove(
                    join(directory, file_names.segment_file(segment.base_offset, file_names.PRODUCER_SNAPSHOT))
                )
        files.sync_directory(directory)

    try:
        take(files, directory, segments, config, replace, clean_to=clean_to, end=end)
    except RefusedProposal as error:
        raise JobError(f"{directory} has changed while it was compacted: {error}") from None
    finally:
        for segment in segments:
            segment.release()
