"""RawBatches: collects whole batches from chunks of a log or of Fetch responses, without decoding records.

Its interface is that of `RecordColumns`: `BatchCollector`. Batches that a consumer may not
see (control batches, aborted transactions) are left out.
"""

from __future__ import annotations

from typing import Protocol

from tailrace.records import header_kernels
from tailrace.records.batch import CONTROL_BIT, TRANSACTIONAL_BIT, Buffer, CorruptBatch, RecordBatch
from tailrace.records.columnar.columns import AbortedRanges
from tailrace.records.legacy import Message

_LAST = 2**63 - 1


class BatchCollector(Protocol):
    """A collector that receives batches in the order of their offsets."""

    @property
    def next_offset(self) -> int:
        """The offset to continue at."""

    @property
    def is_done(self) -> bool:
        """True if the end of the range was reached."""

    @property
    def is_full(self) -> bool:
        """True if enough batches are collected."""

    def skip_to(self, offset: int) -> None:
        """Leave out records before an offset from now on."""

    def leave_out(self, aborted: AbortedRanges) -> None:
        """Leave out the records of these aborted transactions from now on."""

    def put_batches(self, source: Buffer, start: int, end: int) -> int:
        """Read the whole batches between two positions. Return the position after the last batch that was read."""


class RawBatches:
    """The batches with offsets in [start_offset, end_offset). The first and the last batch may extend beyond."""

    def __init__(
        self,
        start_offset: int,
        end_offset: int = _LAST,
        *,
        aborted: AbortedRanges | None = None,
        max_bytes: int = 8_388_608,
    ) -> None:
        self.aborted: AbortedRanges = aborted or {}
        self.start_offset = start_offset
        self.end_offset = end_offset
        self.max_bytes = max_bytes
        self.next_offset = start_offset
        self.is_done = False
        self.is_full = False
        self.batches: list[RecordBatch | Message] = []
        self._held = 0

    def take(self) -> list[RecordBatch | Message]:
        """Return the batches collected since the last call."""
        taken, self.batches = self.batches, []
        self._held = 0
        self.is_full = False
        return taken

    def leave_out(self, aborted: AbortedRanges) -> None:
        self.aborted = aborted

    def skip_to(self, offset: int) -> None:
        self.start_offset = max(self.start_offset, offset)
        self.next_offset = max(self.next_offset, offset)

    def put_batches(self, source: Buffer, start: int, end: int) -> int:
        view = memoryview(source)
        headers, stop, problem = header_kernels.scan_batches(source, start, end)
        for header in headers:
            position, size, base_offset, last_offset, magic = *header[:4], header[5]
            if magic == 2 and base_offset >= self.end_offset:
                self.is_done = True
                return position
            if last_offset >= self.start_offset and self.is_visible(header):
                self._keep(bytes(view[position : position + size]), magic, position)
            self.next_offset = max(self.next_offset, last_offset + 1)
            self.is_done = self.next_offset >= self.end_offset
            self.is_full = self._held >= self.max_bytes
            if self.is_done or self.is_full:
                return position + size
        if problem is not None:
            raise CorruptBatch(problem, position=stop)
        return stop

    def is_visible(self, header: header_kernels.BatchFields) -> bool:
        base_offset, attributes, producer_id = header[2], header[7], header[10]
        if header[5] < 2:
            return True
        if attributes & CONTROL_BIT:
            return False
        is_aborted = attributes & TRANSACTIONAL_BIT and any(
            first <= base_offset <= last for first, last in self.aborted.get(producer_id, ())
        )
        return not is_aborted

    def _keep(self, data: bytes, magic: int, position: int) -> None:
        batch = RecordBatch(memoryview(data)) if magic == 2 else Message(memoryview(data))
        try:
            batch.check()
        except CorruptBatch as error:
            error.note_position(position)
            raise
        self.batches.append(batch)
        self._held += len(data)
