"""Survey: the facts about a partition that need no reading of its segments."""

from __future__ import annotations

from dataclasses import dataclass, field

from tailrace.log.compaction.proposal import PROPOSAL, PROPOSED, TAKEN
from tailrace.log.directories.data_directory import PartitionFolder
from tailrace.log.disk import file_names
from tailrace.log.disk.files import Files, join
from tailrace.log.inspect.findings import Finding, Severity
from tailrace.log.inspect.offline import OfflineLog, Unopenable, open_bounds
from tailrace.log.leader_epochs import EpochStart
from tailrace.log.segments.batch_walk import BatchHeader
from tailrace.log.segments.indexes.index_file import CorruptIndex
from tailrace.log.segments.segment import Segment
from tailrace.model.ids import NO_TIMESTAMP, Offset, TopicId
from tailrace.records.batch import DELETE_HORIZON_BIT, CorruptBatch


@dataclass(frozen=True, slots=True)
class SegmentFacts:
    base_offset: Offset
    end_offset: Offset  # the start of the next segment; for the last segment, the log end
    size: int
    offset_index_entries: int
    time_index_entries: int
    aborted_transactions: int
    has_snapshot: bool
    first_timestamp: int  # of the first batch; -1 if there is none
    largest_timestamp: int
    modified_ms: int


@dataclass(slots=True)
class PartitionFacts:
    folder: PartitionFolder
    topic_id: TopicId | None = None
    log_start_offset: Offset = 0
    log_end_offset: Offset = 0
    high_watermark: Offset | None = None  # from the checkpoint
    epochs: list[EpochStart] = field(default_factory=list)
    segments: list[SegmentFacts] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    is_readable: bool = True

    @property
    def size(self) -> int:
        return sum(segment.size for segment in self.segments)

    @property
    def first_timestamp(self) -> int:
        return next((s.first_timestamp for s in self.segments if s.first_timestamp >= 0), NO_TIMESTAMP)

    @property
    def largest_timestamp(self) -> int:
        return max((segment.largest_timestamp for segment in self.segments), default=NO_TIMESTAMP)


def survey(files: Files, folder: PartitionFolder, now_ms: int) -> PartitionFacts:
    """Return the facts of one partition. Files that cannot be read are among its findings."""
    try:
        offline = open_bounds(files, folder, now_ms)
    except Unopenable as error:
        return PartitionFacts(folder, findings=[Finding(folder.path, str(error))], is_readable=False)
    log = offline.log
    facts = PartitionFacts(
        folder,
        log.topic_id,
        log.log_start_offset,
        log.log_end_offset,
        folder.high_watermark,
        list(log.epochs.entries),
        findings=offline.findings,
    )
    names: set[str] = set()
    try:
        names = {entry.name for entry in offline.files.fresh().entries(folder.path)}
        facts.segments = [_segment_facts(offline, segment, names) for segment in log.segments]
    except CorruptBatch as error:
        facts.findings.append(Finding(error.path or folder.path, error.reason, error.position))
    except CorruptIndex as error:
        facts.findings.append(Finding(error.path, str(error).removeprefix(f"{error.path}: ")))
    except OSError as error:
        facts.findings.append(Finding(str(error.filename or folder.path), f"cannot be read: {error.strerror}"))
    facts.findings += leftovers(folder.path, names)
    for name, offset in (
        ("high watermark", folder.high_watermark),
        ("recovery point", folder.recovery_point),
    ):
        if offset is not None and offset > log.log_end_offset:
            facts.findings.append(
                Finding(
                    folder.path, f"the log ends at {log.log_end_offset}, before its checkpointed {name} of {offset}"
                )
            )
    log.abandon()
    return facts


def _segment_facts(offline: OfflineLog, segment: Segment, names: set[str]) -> SegmentFacts:
    log = offline.log
    later = log.segments.after(segment.base_offset)
    largest = segment.max_timestamp
    if not later:
        for header in segment.headers(segment.offset_index.last().position):
            largest = max(largest, header.max_timestamp)
    first = next(segment.headers(), None)
    facts = SegmentFacts(
        segment.base_offset,
        later[0].base_offset if later else log.log_end_offset,
        segment.size,
        segment.offset_index.count,
        segment.time_index.count,
        len(segment.transaction_index.entries),
        file_names.segment_file(segment.base_offset, file_names.PRODUCER_SNAPSHOT) in names,
        NO_TIMESTAMP if first is None else _first_timestamp(first),
        largest,
        segment.created_ms,
    )
    segment.release()
    return facts


def _first_timestamp(first: BatchHeader) -> int:
    """Return the first record's time. If the cleaner has replaced it with a delete horizon, return the batch's largest
    time."""
    is_record_time = first.magic == 2 and not first.attributes & DELETE_HORIZON_BIT
    return first.base_timestamp if is_record_time else first.max_timestamp


def leftovers(path: str, names: set[str]) -> list[Finding]:
    """Return notes about unknown files and about files of unfinished changes, one note for all files of a kind."""
    notes: dict[str, list[str]] = {}
    for name in sorted(names):
        note = _leftover_note(name, names)
        if note:
            notes.setdefault(note, []).append(name)
    findings = []
    for note, found in notes.items():
        place = join(path, found[0]) if len(found) == 1 else path
        message = note if len(found) == 1 else f"{len(found)} files, {found[0]} and so on: {note}"
        findings.append(Finding(place, message, severity=Severity.NOTE))
    return findings


def _leftover_note(name: str, names: set[str]) -> str | None:
    parsed = file_names.parse_segment_file(name)
    if parsed and parsed[2] == file_names.DELETED:
        return "waiting to be removed"
    if parsed and parsed[2]:
        return "left by an interrupted change; the next start completes or removes it"
    if parsed and parsed[1] not in (file_names.LOG, file_names.PRODUCER_SNAPSHOT):
        is_lone = file_names.segment_file(parsed[0], file_names.LOG) not in names
        return "an index without its log file" if is_lone else None
    if name.endswith(".broken"):
        return "bytes that a recovery or repair cut off"
    if name in (PROPOSAL, TAKEN) or name.endswith(PROPOSED):
        return "a compaction that waits for the broker to swap it in"
    return None if parsed or is_known(name) else "not a file of a log"


_KNOWN = {file_names.LEADER_EPOCH_CHECKPOINT, file_names.PARTITION_METADATA, "quorum-state"}


def is_known(name: str) -> bool:
    """Return True if a file belongs in a partition's folder. The metadata quorum keeps its state and snapshots there
    too."""
    return name in _KNOWN or name.endswith((".checkpoint", ".checkpoint.part", ".checkpoint.deleted", ".tmp"))
