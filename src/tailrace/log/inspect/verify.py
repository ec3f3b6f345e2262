"""Verify: reads everything in a data directory and reports problems with their positions.

For a partition it checks segments with their indexes (verify_segment.py), the continuity of segments, transaction
indexes and producer snapshots (verify_producers.py), leader epochs, the checkpoints' offsets, and file names. For the
directory it checks its checkpoints, its identity, and that the partitions of a topic have the same topic id.

Everything is read with the classes that serve the log. Nothing is changed, and a problem in one place does not hide
another. Changes by a running broker are not problems: a file that has disappeared is a note.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from tailrace.log.directories.data_directory import DataDirectory, PartitionFolder, os_finding
from tailrace.log.disk import file_names
from tailrace.log.disk.checkpoints import CorruptCheckpoint, read_topic_id
from tailrace.log.disk.files import Files, join
from tailrace.log.disk.overlay_files import OverlayFiles
from tailrace.log.inspect.findings import Finding, Severity
from tailrace.log.inspect.survey import leftovers
from tailrace.log.inspect.verify_producers import ProducerCheck
from tailrace.log.inspect.verify_segment import Advance, SegmentResult, SegmentToCheck, check_segment
from tailrace.log.leader_epochs import EpochStart, LeaderEpochs
from tailrace.log.segments.batch_walk import BatchHeader
from tailrace.model.ids import Offset, TopicId

Report = Callable[[Finding], None]
# Checks one segment. Reports its findings and passes its batches to listeners.
CheckSegment = Callable[[SegmentToCheck], SegmentResult]


def no_progress(size: int) -> None:
    pass


@dataclass(slots=True)
class PartitionResult:
    folder: PartitionFolder
    segments: list[SegmentResult] = field(default_factory=list)
    snapshots: int = 0
    topic_id: TopicId | None = None
    findings: list[Finding] = field(default_factory=list)
    are_epochs_wrong: bool = False
    # the log ends before the offset up to which it was flushed, replicated or cleaned
    is_behind_checkpoints: bool = False

    @property
    def problems(self) -> list[Finding]:
        return [finding for finding in self.findings if finding.is_problem]

    @property
    def size(self) -> int:
        return sum(segment.size for segment in self.segments)

    @property
    def batches(self) -> int:
        return sum(segment.batches for segment in self.segments)

    @property
    def records(self) -> int:
        return sum(segment.records for segment in self.segments)

    @property
    def end_offset(self) -> Offset:
        return self.segments[-1].end_offset if self.segments else 0


def log_bytes(files: Files, folder: PartitionFolder) -> int:
    """Return how many bytes there are to read."""
    total = 0
    try:
        for entry in files.entries(folder.path):
            parsed = file_names.parse_segment_file(entry.name)
            if parsed and parsed[1] == file_names.LOG and not parsed[2]:
                total += files.size(join(folder.path, entry.name))
    except OSError:
        pass  # the later read reports the reason
    return total


def verify_partition(
    files: Files,
    folder: PartitionFolder,
    *,
    deep: bool = False,
    advance: Advance = no_progress,
    check: CheckSegment = check_segment,
) -> PartitionResult:
    """Check one partition. Its findings are in the order in which they were found."""
    result = PartitionResult(folder)
    try:
        _Verification(OverlayFiles(files), result, deep=deep, advance=advance, check=check).run()
    except FileNotFoundError as error:
        result.findings.append(os_finding(error, Severity.NOTE))
    except OSError as error:
        result.findings.append(os_finding(error))
    return result


class _Verification:
    def __init__(
        self, files: OverlayFiles, result: PartitionResult, *, deep: bool, advance: Advance, check: CheckSegment
    ) -> None:
        self._files = files
        self._result = result
        self._folder = result.folder
        self._deep = deep
        self._advance = advance
        self._check = check

    def _report(self, finding: Finding) -> None:
        self._result.findings.append(finding)

    def run(self) -> None:
        path, result = self._folder.path, self._result
        names = {entry.name for entry in self._files.entries(path) if not entry.is_directory}
        for finding in leftovers(path, names):
            self._report(finding)
        self._check_topic_id(names)
        bases = sorted(
            parsed[0]
            for name in names
            if (parsed := file_names.parse_segment_file(name)) and parsed[1] == file_names.LOG and not parsed[2]
        )
        if not bases:
            self._report(Finding(path, "has no segment", severity=Severity.NOTE))
            return
        epochs = EpochCheck(self._files, path, self._epoch_report)
        producers = ProducerCheck(self._files, path, self._folder.partition, self._report)
        end = bases[0]
        for number, base in enumerate(bases):
            end = self._check_segment(base, end, number == len(bases) - 1, epochs, producers)
        producers.finish(end)
        epochs.finish(end)
        result.snapshots = producers.snapshots_checked
        self._check_snapshot_names(names, {*bases, end})
        self._check_checkpoints(end)

    def _epoch_report(self, finding: Finding) -> None:
        self._result.are_epochs_wrong |= finding.is_problem
        self._report(finding)

    def _check_segment(
        self, base: Offset, expected: Offset, is_last: bool, epochs: EpochCheck, producers: ProducerCheck
    ) -> Offset:
        """Check one segment and return its end offset."""
        path = join(self._folder.path, file_names.segment_file(base, file_names.LOG))
        if base < expected:
            self._report(Finding(path, f"starts at offset {base}, but the segment before ends at {expected}"))
        elif base > expected:
            producers.gap()
        producers.start_segment(base)
        try:
            found = self._check(
                SegmentToCheck(
                    files=self._files,
                    directory=self._folder.path,
                    base_offset=base,
                    expected_offset=max(base, expected),
                    is_last=is_last,
                    is_clean=self._folder.is_clean,
                    deep=self._deep,
                    report=self._report,
                    advance=self._advance,
                    listeners=[epochs, producers],
                )
            )
        except FileNotFoundError:
            self._report(Finding(path, "was removed meanwhile", severity=Severity.NOTE))
            producers.gap()
            return max(base, expected)
        except OSError as error:
            self._report(os_finding(error))
            producers.gap()
            return max(base, expected)
        self._result.segments.append(found)
        if found.aborted is not None and not found.is_damaged and found.torn_at is None:
            before = len(self._result.findings)
            index = join(self._folder.path, file_names.segment_file(base, file_names.TRANSACTION_INDEX))
            producers.end_segment(found.end_offset, index, found.aborted)
            if len(self._result.findings) > before:
                found.note_wrong_indexes()
        return found.end_offset

    def _check_topic_id(self, names: set[str]) -> None:
        if file_names.PARTITION_METADATA in names:
            try:
                path = join(self._folder.path, file_names.PARTITION_METADATA)
                self._result.topic_id = read_topic_id(self._files, path)
            except CorruptCheckpoint as error:
                self._report(_finding(error))

    def _check_snapshot_names(self, names: set[str], offsets: set[Offset]) -> None:
        for name in sorted(names):
            parsed = file_names.parse_segment_file(name)
            if parsed and parsed[1] == file_names.PRODUCER_SNAPSHOT and not parsed[2] and parsed[0] not in offsets:
                message = "is a snapshot where neither a segment starts nor the log ends"
                self._report(Finding(join(self._folder.path, name), message, severity=Severity.NOTE))

    def _check_checkpoints(self, end: Offset) -> None:
        folder = self._folder
        for name, offset in (
            ("log start offset", folder.log_start_offset),
            ("recovery point", folder.recovery_point),
            ("high watermark", folder.high_watermark),
            ("cleaner offset", folder.cleaned_to),
        ):
            if offset is not None and offset > end:
                self._report(Finding(folder.path, f"the log ends at {end}, before its checkpointed {name} of {offset}"))
                self._result.is_behind_checkpoints |= name != "log start offset"


class EpochCheck:
    """Checks that every batch has the leader epoch that `leader-epoch-checkpoint` has for its offset."""

    def __init__(self, files: Files, directory: str, report: Report) -> None:
        self._report = report
        self._path = join(directory, file_names.LEADER_EPOCH_CHECKPOINT)
        self._entries: list[EpochStart] | None = None
        self._slot = -1
        self._complained: set[int] = set()
        epochs = LeaderEpochs(files, self._path)
        try:
            if files.exists(self._path):
                epochs.load()
                self._entries = epochs.entries
            else:
                report(Finding(self._path, "is missing", severity=Severity.NOTE))
        except CorruptCheckpoint as error:
            report(_finding(error))

    def gap(self) -> None:
        pass

    def batch(self, header: BatchHeader, view: memoryview, path: str) -> None:
        entries = self._entries
        if not entries or header.leader_epoch < 0 or header.base_offset < entries[0].start_offset:
            return
        while self._slot + 1 < len(entries) and entries[self._slot + 1].start_offset <= header.base_offset:
            self._slot += 1
        epoch = entries[self._slot].epoch
        if epoch != header.leader_epoch and header.leader_epoch not in self._complained:
            self._complained.add(header.leader_epoch)
            self._report(
                Finding(
                    self._path,
                    f"has epoch {epoch} for offset {header.base_offset}, which was written under epoch "
                    f"{header.leader_epoch} ({path.rpartition('/')[2]} at position {header.position})",
                )
            )

    def finish(self, end: Offset) -> None:
        for epoch, start_offset in self._entries or ():
            if start_offset > end:
                self._report(Finding(self._path, f"starts epoch {epoch} at {start_offset}, after the log end {end}"))


def verify_directory(directory: DataDirectory, results: Iterable[PartitionResult]) -> list[Finding]:
    """Return the problems of the directory as a whole."""
    findings = list(directory.findings)
    ids: dict[str, tuple[TopicId, str]] = {}
    for result in results:
        if result.topic_id is None or result.folder.mark:
            continue
        topic = result.folder.partition.topic
        known, where = ids.setdefault(topic, (result.topic_id, result.folder.path))
        if known != result.topic_id:
            path = join(result.folder.path, file_names.PARTITION_METADATA)
            findings.append(Finding(path, f"has topic id {result.topic_id}, but {where} has {known}"))
    return findings


def _finding(error: CorruptCheckpoint) -> Finding:
    return Finding(error.path, str(error).removeprefix(f"{error.path}: "))
