# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# cython: initializedcheck=False, annotation_typing=False
"""The loop over batches that a follower receives from its leader.

Plain Python that Cython compiles in place, with its C types in replicated_kernels.pxd. The rules of
`records/kernels.py` apply.
"""

from __future__ import annotations

from tailrace.records.batch import Buffer
from tailrace.records.codecs.crc32c import crc32c

COMPILED = not __file__.endswith(".py")

# Why the loop ended before the batch at its position, in the order of the checks.
CUT_SHORT = 0  # also for the end of the bytes
NOT_A_BATCH = 1
OLD_FORMAT = 2
WRONG_CHECKSUM = 3
TOO_FAR = 4
LATER_EPOCH = 5
NO_EPOCH = 6
OFFSET_BELOW = 7
OFFSET_OVERFLOW = 8


def _int32(data: Buffer, position: int) -> int:
    """Return a signed big-endian integer. The caller has checked that there are four bytes."""
    high = (data[position] ^ 0x80) - 0x80
    return high * 16777216 + (data[position + 1] << 16 | data[position + 2] << 8 | data[position + 3])


def _int64(data: Buffer, position: int) -> int:
    return (_int32(data, position) + (data[position + 4] >> 7)) * 65536 * 65536 + _int32(data, position + 4)


def _frame_fault(data: Buffer, start: int, end: int) -> int:
    """Return why there is no whole v2 batch at a position, or -1 if there is one."""
    if end - start < 12:
        return 0
    size = _int32(data, start + 8) + 12
    if size > end - start:
        return 0
    if size < 26 or data[start + 16] > 2:
        return 1
    if data[start + 16] < 2:
        return 2
    return 1 if size < 61 else -1


def last_batch(data: Buffer) -> int:
    """Return the position of the last whole batch, or -1 if there is none or a batch is not of format 2."""
    view = data
    end = len(view)
    last = -1
    start = 0
    while True:
        fault = _frame_fault(view, start, end)
        if fault >= 0:
            return last if fault == 0 else -1
        last = start
        start += _int32(view, start + 8) + 12


def take_replicated(
    data: memoryview,
    start: int,
    next_offset: int,
    epoch_max: int,
    batches: list[tuple[int, int, int]],
    epochs: list[tuple[int, int]],
    produced: list[tuple[int, memoryview]],
) -> tuple[int, int, int]:
    """Read whole v2 batches from `start` on.

    Each batch has a matching checksum, a leader epoch up to `epoch_max`, a base offset of at least `next_offset`, and
    no offset more than 2^31 - 1 after the first one of all. `batches` gets the size, last offset and largest timestamp
    of each. `epochs` gets an epoch and its first offset if it differs from the last one there. `produced` gets the
    batches with a producer id, each with its position.

    Returns the position after the last batch, why the next one is not read, and the largest timestamp (-1 if none).
    """
    view = data
    end = len(view)
    epoch = -1
    largest = -1
    first_offset = -1
    if start < 0:
        raise ValueError(f"{start} is not a valid position; it must be at least 0")
    if epochs:
        epoch = epochs[len(epochs) - 1][0]
        first_offset = epochs[0][1]
    while True:
        fault = _frame_fault(view, start, end)
        if fault >= 0:
            return start, fault, largest
        size = _int32(view, start + 8) + 12
        if crc32c(data[start + 21 : start + size]) != (_int32(view, start + 17) & 0xFFFFFFFF):
            return start, 3, largest
        base_offset = _int64(view, start)
        delta = _int32(view, start + 23)
        if base_offset >= 0 and delta >= 0x7FFFFFFFFFFFFFFF - base_offset:
            return start, 8, largest  # the offset after the last one would exceed 64 bits
        if first_offset >= 0 and base_offset + delta - first_offset > 0x7FFFFFFF:
            return start, 4, largest
        batch_epoch = _int32(view, start + 12)
        if batch_epoch > epoch_max:
            return start, 5, largest
        if batch_epoch < 0:
            return start, 6, largest
        if base_offset < next_offset:
            return start, 7, largest
        if batch_epoch != epoch:
            epoch = batch_epoch
            epochs.append((epoch, base_offset))
            if first_offset < 0:
                first_offset = base_offset
        if view[start + 43] < 0x80:
            produced.append((start, data[start : start + size]))
        next_offset = base_offset + delta + 1
        timestamp = _int64(view, start + 35)
        if timestamp > largest:
            largest = timestamp
        batches.append((size, base_offset + delta, timestamp))
        start += size
