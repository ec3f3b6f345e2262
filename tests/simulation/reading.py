"""Records in logs and fetch responses, as a client reads them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from tailrace.protocol.messages import FetchResponse
from tailrace.records.batch import RecordBatch
from tailrace.records.conversion import split_any
from tailrace.records.record import iter_records
from tailrace.replication.partition import Partition

Record = tuple[int, bytes]  # leader epoch and value


def values_of(data: bytes) -> Iterator[tuple[int, int, bytes]]:
    """Yield (offset, leader epoch, value) of every record."""
    for one in split_any(data):
        assert isinstance(one, RecordBatch)
        for record in iter_records(one):
            yield record.offset, one.leader_epoch, bytes(record.value or b"")


@lru_cache(maxsize=20_000)
def records_of(data: bytes) -> tuple[tuple[int, Record], ...]:
    """Return (offset, record) pairs of a batch; cached, because the same batches are checked again and again."""
    return tuple((offset, (epoch, value)) for offset, epoch, value in values_of(data))


def aborted_in(answer: FetchResponse.PartitionData) -> list[tuple[int, int]]:
    return [(one.producer_id, one.first_offset) for one in answer.aborted_transactions or []]


def committed_values(data: bytes, aborted: list[tuple[int, int]]) -> set[bytes]:
    """Return the values in fetched data that a read_committed consumer keeps, given the aborted transactions."""
    found: set[bytes] = set()
    open_aborted: set[int] = set()
    waiting = sorted(aborted, key=lambda one: one[1])
    for one in split_any(data):
        assert isinstance(one, RecordBatch)
        while waiting and waiting[0][1] <= one.last_offset:
            open_aborted.add(waiting.pop(0)[0])
        if one.is_control:
            open_aborted.discard(one.producer_id)
        elif not (one.is_transactional and one.producer_id in open_aborted):
            found.update(bytes(record.value or b"") for record in iter_records(one))
    return found


def history_of(partition: Partition, start: int = 0) -> dict[int, Record]:
    """Return the records of a log from an offset on, even before the log start."""
    found: dict[int, Record] = {}
    for segment in reversed(list(partition.log.segments)):
        for header, view in segment.batches():
            if header.next_offset > start:
                found.update(records_of(bytes(view)))
        if segment.base_offset <= start:
            break
    return found
