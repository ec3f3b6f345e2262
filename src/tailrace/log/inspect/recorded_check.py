"""RecordedCheck: the check of one segment, recorded for a later verification of its partition.

Checking segments is most of the work of `verify.py`. It is independent of earlier segments, except for two listeners:
leader epochs and producers are followed from batch to batch through the whole log. A segment can therefore be checked
anywhere, in any order. The results are then replayed in the order of the log:

    findings    in the order in which they were found
    batches     those that listeners have to see: with a producer, or with an unexpected leader epoch. The header is
                enough for a data batch
    a gap       the first one: after it the state is incomplete

A record is valid for the files from which it was made, and for the expected offset at the start of the segment.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from tailrace.log.disk import file_names
from tailrace.log.disk.files import Files
from tailrace.log.inspect.findings import Finding, Severity
from tailrace.log.inspect.verify import EpochCheck, no_progress
from tailrace.log.inspect.verify_indexes import Report
from tailrace.log.inspect.verify_segment import Advance, BatchListener, SegmentResult, SegmentToCheck, check_segment
from tailrace.log.segments.batch_walk import BatchHeader, parse_header
from tailrace.log.segments.indexes.transaction_index import AbortedTransaction
from tailrace.model.ids import Offset
from tailrace.records.batch import HEADER_SIZE, PREFIX, RecordBatch

Event = Finding | tuple[int, bytes] | None  # a finding, a batch with its position, or a gap


@dataclass(slots=True)
class RecordedCheck:
    expected_offset: Offset
    is_last: bool
    result: SegmentResult
    events: list[Event] = field(default_factory=list)

    def replay(self, path: str, report: Report, listeners: Sequence[BatchListener]) -> SegmentResult:
        """Replay the check to a report function and listeners."""
        for event in self.events:
            if event is None:
                for listener in listeners:
                    listener.gap()
            elif isinstance(event, Finding):
                report(event)
            else:
                position, data = event
                header = parse_header(data, 0, position, PREFIX.unpack_from(data)[1] + PREFIX.size)
                for listener in listeners:
                    listener.batch(header, memoryview(data), path)
        return self.result

    def to_json(self) -> dict[str, Any]:
        return {
            "expectedOffset": self.expected_offset,
            "isLast": self.is_last,
            "result": asdict(self.result),
            "events": [_event_json(event) for event in self.events],
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> RecordedCheck:
        """Decode the output of to_json. Raise KeyError, TypeError or ValueError for other data."""
        result = SegmentResult(**value["result"])
        if result.aborted is not None:
            result.aborted = [AbortedTransaction(*entry) for entry in result.aborted]
        events = [_event_from(event) for event in value["events"]]
        return cls(int(value["expectedOffset"]), bool(value["isLast"]), result, events)


def _event_json(event: Event) -> Any:
    if event is None:
        return None
    if isinstance(event, Finding):
        return [event.path, event.message, event.position, event.severity.value]
    return [event[0], b64encode(event[1]).decode("ascii")]


def _event_from(value: Any) -> Event:
    if value is None:
        return None
    if len(value) == 2:
        return int(value[0]), b64decode(value[1])
    path, message, position, severity = value
    return Finding(path, message, position, Severity(severity))


class _Recorder:
    """Listens to a check and records the events that other listeners need."""

    def __init__(self, files: Files, directory: str) -> None:
        self.events: list[Event] = []
        self._has_gap = False
        self._at_odds: list[Finding] = []
        self._epochs = EpochCheck(files, directory, self._at_odds.append)

    def report(self, finding: Finding) -> None:
        self.events.append(finding)

    def gap(self) -> None:
        if not self._has_gap:
            self._has_gap = True
            self.events.append(None)

    def batch(self, header: BatchHeader, view: memoryview, path: str) -> None:
        self._at_odds.clear()
        self._epochs.batch(header, view, path)
        is_of_producer = header.magic == 2 and header.producer_id >= 0
        if is_of_producer or self._at_odds:
            is_whole = header.magic < 2 or RecordBatch(view).is_control
            self.events.append((header.position, bytes(view if is_whole else view[:HEADER_SIZE])))


def record_check(
    files: Files,
    directory: str,
    base_offset: Offset,
    *,
    is_last: bool,
    is_clean: bool,
    deep: bool,
    advance: Advance = no_progress,
) -> RecordedCheck:
    """Check a segment that starts where the previous one ends. Raise OSError if its log file cannot be read."""
    recorder = _Recorder(files, directory)
    result = check_segment(
        SegmentToCheck(
            files=files,
            directory=directory,
            base_offset=base_offset,
            expected_offset=base_offset,
            is_last=is_last,
            is_clean=is_clean,
            deep=deep,
            report=recorder.report,
            advance=advance,
            listeners=[recorder],
        )
    )
    return RecordedCheck(base_offset, is_last, result, recorder.events)


class RecordedChecks:
    """Replaces `check_segment` by recorded checks. A segment without a recorded check is checked at once."""

    def __init__(self, records: Mapping[Offset, RecordedCheck]) -> None:
        self._records = records

    def __call__(self, segment: SegmentToCheck) -> SegmentResult:
        record = self._records.get(segment.base_offset)
        if record is not None and (record.expected_offset, record.is_last) == (
            segment.expected_offset,
            segment.is_last,
        ):
            return record.replay(segment.path(file_names.LOG), segment.report, segment.listeners)
        return check_segment(segment)
