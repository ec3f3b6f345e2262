"""Completes changes of files that a crash interrupted: `.deleted` and `.cleaned` files are removed, a complete `.swap`
is finished.

A `.swap` is complete if no `.cleaned` file at or below its offset is left (`segment_swap.py` explains why). The old
segments are removed, then the new one takes their place. Its indexes are rebuilt. If only some of the renames reached
the disk, the indexes of the old and the new segment cannot be distinguished.
"""

from __future__ import annotations

from collections.abc import Iterable

from tailrace.log.disk import file_names
from tailrace.log.disk.files import Files, join
from tailrace.log.segments.segment import Segment
from tailrace.model.ids import Offset
from tailrace.model.topic_config import LONG_MAX, TopicConfig


def finish_interrupted_changes(files: Files, directory: str, config: TopicConfig) -> None:
    """Complete or undo all changes, so that only files without a suffix are left."""
    parsed = _parsed(files, directory)
    first_cleaned = min((base for _, base, _, suffix in parsed if suffix == file_names.CLEANED), default=LONG_MAX)
    swaps = [found for found in parsed if found[3] == file_names.SWAP]
    # Swaps first: without the `.cleaned` files that make them invalid they would look complete.
    _remove(files, directory, [name for name, base, _, _ in swaps if base >= first_cleaned])
    _remove(files, directory, [name for name, *_, suffix in parsed if suffix and suffix != file_names.SWAP])
    finished = [(base, kind) for _, base, kind, _ in swaps if base < first_cleaned]
    if finished:
        _carry_on(files, directory, config, finished)


def _parsed(files: Files, directory: str) -> list[tuple[str, Offset, str, str]]:
    """Return the segments' files in order: name, base offset, kind, suffix."""
    names = sorted(entry.name for entry in files.entries(directory) if not entry.is_directory)
    return [(name, *found) for name in names if (found := file_names.parse_segment_file(name))]


def _remove(files: Files, directory: str, names: Iterable[str]) -> None:
    removed = [files.remove(join(directory, name)) for name in names]
    if removed:
        files.sync_directory(directory)


def _carry_on(files: Files, directory: str, config: TopicConfig, swaps: list[tuple[Offset, str]]) -> None:
    bases = sorted(base for base, kind in swaps if kind == file_names.LOG)
    # A segment without its offset index is indexed again, also after another crash.
    going = {file_names.segment_file(base, file_names.OFFSET_INDEX) for base, _ in swaps}
    if bases:
        last = Segment.open(files, directory, bases[-1], config, suffix=file_names.SWAP)
        end = max(last.next_offset(), bases[-1] + 1)
        last.release()
        going |= {name for name, base, _, suffix in _parsed(files, directory) if not suffix and bases[0] <= base < end}
    _remove(files, directory, sorted(going))
    for base in bases:
        source = join(directory, file_names.segment_file(base, file_names.LOG, file_names.SWAP))
        files.replace(source, join(directory, file_names.segment_file(base, file_names.LOG)))
        files.sync_directory(directory)
    indexes = [file_names.segment_file(base, kind, file_names.SWAP) for base, kind in swaps if kind != file_names.LOG]
    _remove(files, directory, indexes)
