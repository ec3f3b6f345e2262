"""Repair: fixes the problems that verify found, as far as the log has the correct data.

    indexes wrong or missing        removed, and rebuilt from the log when it is opened
    offsets that overflow           the segment is split when it is opened
    a producer snapshot is wrong    removed; the log is replayed and a new one written
    leader epochs wrong             rebuilt from the batches; the old file is kept as `.broken`
    a torn tail                     cut off; the bytes are kept as `.broken`, unless they are all zeros
    a damaged batch                 left alone, or (`cut_damaged`) the log ends before it: the rest is kept as `.broken`
    checkpoints beyond the end      set to the end, as a broker would

The repair opens the log as a broker does after a crash. On an OverlayFiles it is a dry run, and `OverlayFiles.changes`
lists its changes. On the disk it makes the same changes.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tailrace.log.disk import file_names
from tailrace.log.disk.checkpoints import CorruptCheckpoint, read_offsets, write_offsets
from tailrace.log.disk.files import File, Files, join
from tailrace.log.inspect.findings import Finding
from tailrace.log.inspect.verify import PartitionResult
from tailrace.log.inspect.verify_segment import SegmentResult
from tailrace.log.leader_epochs import LeaderEpochs
from tailrace.log.recovery.recovery import RecoveryReport, open_log
from tailrace.log.segments.segment import Segment
from tailrace.model.ids import Offset, TopicPartition
from tailrace.model.topic_config import LONG_MAX, TopicConfig
from tailrace.records.batch import CorruptBatch

BROKEN = ".broken"
_MAY_BE_LOWERED = (
    file_names.RECOVERY_POINT_CHECKPOINT,
    file_names.HIGH_WATERMARK_CHECKPOINT,
    file_names.CLEANER_CHECKPOINT,
)
_CHUNK = 1024 * 1024


@dataclass(slots=True)
class RepairPlan:
    """The repair of a partition's problems."""

    path: str
    rebuild: list[Offset] = field(default_factory=list)  # segments whose indexes are rebuilt
    snapshots: list[str] = field(default_factory=list)  # to be removed
    rebuild_epochs: bool = False
    cut: tuple[Offset, int] | None = None  # segment and position at which the log will end
    lower_checkpoints: bool = False
    left: list[Finding] = field(default_factory=list)  # problems that are not repaired

    @property
    def is_empty(self) -> bool:
        return not (self.rebuild or self.snapshots or self.rebuild_epochs or self.cut or self.lower_checkpoints)


def plan_repair(result: PartitionResult, *, cut_damaged: bool = False) -> RepairPlan:
    """Return the repair for the problems that verify found in a partition."""
    plan = RepairPlan(result.folder.path)
    damaged = [segment for segment in result.segments if segment.is_damaged]
    if damaged and cut_damaged:
        plan.cut = damaged[0].base_offset, damaged[0].damaged_at or 0
    elif result.segments and result.segments[-1].torn_at is not None and not result.segments[-1].is_damaged:
        plan.cut = result.segments[-1].base_offset, result.segments[-1].torn_at
    plan.rebuild = [
        segment.base_offset
        for segment in result.segments
        if (segment.are_indexes_wrong or segment.does_overflow)
        and not segment.is_damaged
        and (plan.cut is None or segment.base_offset <= plan.cut[0])
    ]
    plan.snapshots = [
        finding.path for finding in result.problems if finding.path.endswith(file_names.PRODUCER_SNAPSHOT)
    ]
    plan.rebuild_epochs = result.are_epochs_wrong
    plan.lower_checkpoints = result.is_behind_checkpoints
    plan.left = [finding for finding in result.problems if not _is_mended(finding, plan, result.segments)]
    return plan


def _is_mended(finding: Finding, plan: RepairPlan, segments: list[SegmentResult]) -> bool:
    name = finding.path.rpartition("/")[2]
    parsed = file_names.parse_segment_file(name)
    if name == file_names.LEADER_EPOCH_CHECKPOINT or (finding.path == plan.path and plan.lower_checkpoints):
        return True
    if not parsed:
        return False
    base, kind, _ = parsed
    if kind == file_names.PRODUCER_SNAPSHOT:
        return True
    if plan.cut is not None and base >= plan.cut[0]:
        return base > plan.cut[0] or kind != file_names.LOG or (finding.position or 0) >= plan.cut[1]
    if kind != file_names.LOG:
        return base in plan.rebuild
    segment = next((segment for segment in segments if segment.base_offset == base), None)
    return segment is not None and segment.does_overflow and not segment.is_damaged


def repair_partition(files: Files, plan: RepairPlan, *, log_start_offset: Offset = 0, now_ms: int) -> RecoveryReport:
    """Carry out the plan, on the disk or in memory. Return what opening the log found."""
    for base in plan.rebuild:
        for kind in (file_names.OFFSET_INDEX, file_names.TIME_INDEX, file_names.TRANSACTION_INDEX):
            files.remove(join(plan.path, file_names.segment_file(base, kind)))
    for path in plan.snapshots:
        files.remove(path)
    if plan.cut is not None:
        _keep_tail(files, join(plan.path, file_names.segment_file(plan.cut[0], file_names.LOG)), plan.cut[1])
    if plan.rebuild_epochs:
        _rebuild_epochs(files, plan.path)
    report = RecoveryReport()
    log = open_log(
        files,
        plan.path,
        TopicConfig(),
        now_ms=now_ms,
        log_start_offset=log_start_offset,
        recovery_point=LONG_MAX if plan.cut is None else plan.cut[0],
        recover=plan.cut is not None,
        may_have_gaps=True,
        producer_expiration_ms=LONG_MAX,
        report=report,
    )
    log.flush(now_ms)
    log.close()
    files.sync_directory(plan.path)
    if plan.cut is not None or plan.lower_checkpoints:
        _lower_checkpoints(files, plan.path.rpartition("/")[0] or ".", log.partition, log.log_end_offset)
    return report


def _lower_checkpoints(files: Files, directory: str, partition: TopicPartition, end: Offset) -> None:
    """Lower the checkpoints to the end of the log."""
    for name in _MAY_BE_LOWERED:
        path = join(directory, name)
        try:
            offsets = read_offsets(files, path)
        except CorruptCheckpoint:
            continue  # a broker starts without the file
        if offsets.get(partition, 0) > end:
            write_offsets(files, path, {**offsets, partition: end})


def _keep_tail(files: Files, path: str, position: int) -> None:
    """Copy the bytes that are about to be cut. A tail of zeros was never written to and is not kept."""
    source = files.open(path, read_only=True)
    try:
        size = source.size()
        if _is_all_zeros(source, position, size):
            return
        copy = files.open(f"{path}.{position}{BROKEN}", create=True)
        try:
            copy.truncate(0)
            for start in range(position, size, _CHUNK):
                copy.write(start - position, source.read(start, min(_CHUNK, size - start)))
            copy.sync()
        finally:
            copy.close()
    finally:
        source.close()


def _is_all_zeros(file: File, start: int, end: int) -> bool:
    return not any(any(file.read(at, min(_CHUNK, end - at))) for at in range(start, end, _CHUNK))


def _rebuild_epochs(files: Files, directory: str) -> None:
    path = join(directory, file_names.LEADER_EPOCH_CHECKPOINT)
    if files.exists(path):
        files.replace(path, path + BROKEN)
    epochs = LeaderEpochs(files, path)
    bases = sorted(
        parsed[0]
        for entry in files.entries(directory)
        if (parsed := file_names.parse_segment_file(entry.name)) and parsed[1] == file_names.LOG and not parsed[2]
    )
    for base in bases:
        segment = Segment.open(files, directory, base, TopicConfig())
        try:
            for header in segment.headers():
                latest = epochs.latest
                if header.leader_epoch >= 0 and (latest is None or header.leader_epoch > latest.epoch):
                    epochs.assign(header.leader_epoch, header.base_offset)
        except CorruptBatch:
            pass  # the batches of the next segment have their epoch
        finally:
            segment.release()
    epochs.write()
