"""Open a partition's log for inspection, with the code that serves it, without changing the disk.

Everything goes through `OverlayFiles`, so that recovery works in memory. There are two depths:

- `open_bounds`: segments, their indexes and the log's bounds. Only the last segment is scanned, after its last index
  entry. A missing or invalid index is treated as empty, which makes lookups slower but not wrong. An invalid tail is
  left out. Producers are not loaded, so there is no last stable offset.
- `open_exact`: also producers, so that the last stable offset and aborted transactions are those that a broker would
  report. After an unclean stop this reads the last segment. Recovery cuts a torn tail in memory.

Files of a running broker grow, are renamed and disappear. If an attempt fails in a directory that may be in use, the
log is opened again before the problem is reported.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from tailrace.log.directories.data_directory import PartitionFolder
from tailrace.log.disk import file_names
from tailrace.log.disk.checkpoints import CorruptCheckpoint
from tailrace.log.disk.files import Files, join
from tailrace.log.disk.overlay_files import OverlayFiles
from tailrace.log.inspect.findings import Finding, InspectionFailed
from tailrace.log.partition_log import PartitionLog
from tailrace.log.recovery.recovery import RecoveryReport, open_log
from tailrace.log.segments.indexes.index_file import CorruptIndex
from tailrace.log.segments.indexes.offset_index import OffsetIndex, OffsetPosition
from tailrace.log.segments.indexes.transaction_index import TransactionIndex
from tailrace.log.segments.segment import Segment
from tailrace.model.errors import KafkaError
from tailrace.model.ids import Offset
from tailrace.model.topic_config import INT_MAX, LONG_MAX, TopicConfig
from tailrace.records.batch import CorruptBatch

_REMOVED_FILES_MAX = 4
_ENTRY_SIZES = {file_names.OFFSET_INDEX: 8, file_names.TIME_INDEX: 12}


class Unopenable(InspectionFailed):
    """A partition that cannot be opened. The text gives the file and the reason."""


@dataclass(slots=True)
class OfflineLog:
    """A log opened for inspection, and the findings from opening it."""

    log: PartitionLog
    folder: PartitionFolder
    files: OverlayFiles
    findings: list[Finding] = field(default_factory=list)


def open_bounds(files: Files, folder: PartitionFolder, now_ms: int) -> OfflineLog:
    return _open_with_retries(
        files, folder, lambda overlay, found: _open_bounds(overlay, folder, found, now_ms), attempts=4
    )


def open_exact(files: Files, folder: PartitionFolder, now_ms: int) -> OfflineLog:
    # Two attempts are enough: the second one reads a torn tail in the last segment again.
    return _open_with_retries(
        files, folder, lambda overlay, found: _open_exact(overlay, folder, found, now_ms), attempts=2
    )


def _open_with_retries(
    files: Files,
    folder: PartitionFolder,
    open_in: Callable[[OverlayFiles, list[Finding]], PartitionLog],
    *,
    attempts: int,
) -> OfflineLog:
    """Open the log. Repeat without each small file that is corrupt. Repeat also if a file has disappeared or if there
    are problems, which a running broker may have caused."""
    ignored: list[Finding] = []
    vanished = 0
    attempts_left = 0 if folder.is_clean else attempts - 1
    while True:
        overlay = OverlayFiles(files, without=[finding.path for finding in ignored])
        findings = list(ignored)
        try:
            overlay.entries(folder.path)  # a missing folder is an error, and is not created
            log = open_in(overlay, findings)
        except CorruptCheckpoint as error:
            ignored.append(Finding(error.path, str(error).removeprefix(f"{error.path}: ")))
            if ignored.count(ignored[-1]) > 1:
                raise Unopenable(str(error)) from None
        except FileNotFoundError as error:
            vanished += 1
            if vanished == _REMOVED_FILES_MAX:
                raise Unopenable(f"{error.filename or folder.path} was removed while the log was opened") from None
        except OSError as error:
            raise Unopenable(f"{error.filename or folder.path} cannot be read: {error.strerror}") from None
        except (CorruptBatch, CorruptIndex, KafkaError) as error:
            raise Unopenable(f"{folder.path}: {error}") from None
        else:
            if len(findings) > len(ignored) and attempts_left:
                attempts_left -= 1
                log.abandon()
                continue
            high_watermark = LONG_MAX if folder.high_watermark is None else folder.high_watermark
            log.advance_high_watermark(high_watermark)
            return OfflineLog(log, folder, overlay, findings)


def _open_bounds(overlay: OverlayFiles, folder: PartitionFolder, findings: list[Finding], now_ms: int) -> PartitionLog:
    names = [entry.name for entry in overlay.entries(folder.path) if not entry.is_directory]
    for name in names:
        # Without snapshots a cleanly stopped log has no producers, and nothing is read to find them.
        if name.endswith(file_names.PRODUCER_SNAPSHOT):
            overlay.remove(join(folder.path, name))
    findings += _replace_bad_indexes(overlay, folder.path, names)
    while True:
        try:
            log = open_log(overlay, folder.path, TopicConfig(), now_ms=now_ms, clean=True, recover=False)
            break
        except CorruptBatch as error:
            if error.path is None or error.position is None:
                raise
            tail = overlay.open(error.path)
            lost = tail.size() - error.position
            if lost <= 0:
                raise
            findings.append(
                Finding(error.path, f"the last {lost} bytes are not a batch: {error.reason}", error.position)
            )
            tail.truncate(error.position)
    start = _log_start(folder, log, findings)
    log.advance_high_watermark(max(start, folder.high_watermark or 0))
    log.delete_records(start, now_ms)
    return log


def _log_start(folder: PartitionFolder, log: PartitionLog, findings: list[Finding]) -> Offset:
    start = folder.log_start_offset or 0
    if start <= log.log_end_offset:
        return start
    # A broker would set the segments aside and continue with an empty log at that offset. An inspection shows them.
    findings.append(
        Finding(
            folder.path, f"the log ends at {log.log_end_offset}, before the log start offset {start} of the checkpoint"
        )
    )
    return 0


def _open_exact(overlay: OverlayFiles, folder: PartitionFolder, findings: list[Finding], now_ms: int) -> PartitionLog:
    bounds: list[Finding] = []
    start = _log_start(folder, _open_bounds(overlay.fresh(), folder, bounds, now_ms), findings)
    findings += _remove_disordered_indexes(overlay, folder.path)
    recovery_point: Offset | None = None
    while True:
        report = RecoveryReport()
        try:
            log = open_log(
                overlay,
                folder.path,
                TopicConfig(),
                now_ms=now_ms,
                log_start_offset=start,
                recovery_point=recovery_point or 0,
                clean=folder.is_clean and recovery_point is None,
                recover=recovery_point is not None,
                may_have_gaps=True,
                producer_expiration_ms=LONG_MAX,
                report=report,
            )
        except CorruptBatch as error:
            damaged = file_names.parse_segment_file((error.path or "").rpartition("/")[2])
            if damaged is None or (recovery_point is not None and damaged[0] >= recovery_point):
                raise
            recovery_point = damaged[0]
            continue
        findings += [_located(folder.path, problem) for problem in report.problems]
        return log


def _located(path: str, problem: str) -> Finding:
    """Convert a problem that recovery reported as text, which usually starts with the file."""
    place, _, message = problem.partition(": ")
    if place.startswith(path) and message:
        return Finding(place, message)
    return Finding(path, problem.removeprefix(f"{path}/"))


def _remove_disordered_indexes(overlay: OverlayFiles, path: str) -> list[Finding]:
    """Remove, in memory, indexes whose entries cannot be searched, so that they are rebuilt.

    This covers only the last two segments, in which producers are replayed, because reading all indexes of a large log
    takes long.
    """
    findings = []
    parsed = [found for entry in overlay.entries(path) if (found := file_names.parse_segment_file(entry.name))]
    for base in sorted(base for base, kind, suffix in parsed if kind == file_names.LOG and not suffix)[-2:]:
        index = OffsetIndex(overlay, join(path, file_names.segment_file(base, file_names.OFFSET_INDEX)), base, INT_MAX)
        if not overlay.exists(index.file.path):
            continue
        try:
            index.check()
        except CorruptIndex as error:
            findings.append(Finding(error.path, str(error).removeprefix(f"{error.path}: ")))
            overlay.remove(error.path)
        else:
            _pin(overlay, index)
    return findings


def _replace_bad_indexes(overlay: OverlayFiles, path: str, names: list[str]) -> list[Finding]:
    """Replace missing or invalid indexes with empty ones, in memory, so that nothing is rebuilt."""
    findings = []
    parsed = [found for name in names if (found := file_names.parse_segment_file(name)) and not found[2]]
    bases = sorted(base for base, kind, _ in parsed if kind == file_names.LOG)
    for base in bases:
        for kind in _ENTRY_SIZES:
            index = join(path, file_names.segment_file(base, kind))
            problem = _index_problem(overlay, index, kind, is_last=base == bases[-1])
            if problem:
                findings.append(Finding(index, problem))
                overlay.write(index, b"", sync=False)
        index = join(path, file_names.segment_file(base, file_names.TRANSACTION_INDEX))
        if overlay.exists(index):
            try:
                _ = TransactionIndex(overlay, index, base).entries
            except CorruptIndex as error:
                findings.append(Finding(index, str(error).removeprefix(f"{index}: ")))
                overlay.remove(index)
    return findings


def _index_problem(overlay: OverlayFiles, path: str, kind: str, *, is_last: bool) -> str | None:
    if not overlay.exists(path):
        # The log file of a new segment is created before its indexes.
        return "is missing" if overlay.size(path.removesuffix(kind) + file_names.LOG) else None
    width = _ENTRY_SIZES[kind]
    size = overlay.size(path)
    if size % width:
        return f"has {size} bytes, which is not a multiple of the entry size {width}"
    if is_last and kind == file_names.OFFSET_INDEX:
        # The end of the log is found from the last entry on, so the last entry must be right.
        directory, _, name = path.rpartition("/")
        last = _pin(overlay, OffsetIndex(overlay, path, int(name[:20]), INT_MAX))
        segment = Segment.open(overlay, directory, int(name[:20]), TopicConfig(), read_only=True)
        if not is_entry_right(segment, last):
            return f"its last entry is wrong: no batch at position {last.position} ends with offset {last.offset}"
    return None


def _pin(overlay: OverlayFiles, index: OffsetIndex) -> OffsetPosition:
    """Freeze an index at its current size and return its last entry.

    A running broker appends to the index. The size of the log is read afterwards, so that no entry points beyond it.
    """
    overlay.write(index.file.path, bytes(index.file.data), sync=False)
    return index.last()


def is_entry_right(segment: Segment, entry: OffsetPosition) -> bool:
    """Return True if a batch starts at the position of an index entry and has its last offset."""
    if entry.position == 0:
        return True  # position 0 means "no entry"
    if not 0 < entry.position < segment.size:
        return False
    try:
        header = next(segment.headers(entry.position), None)
    except CorruptBatch:
        return False
    return header is not None and header.last_offset == entry.offset
