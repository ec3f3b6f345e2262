"""Append of one batch at a time against plain pwrite of the same bytes plus CRC-32C."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from pathlib import Path

from crc32c import crc32c

from benchmarks.data import NOW_MS, batch_of, open_at
from benchmarks.measure import Row, take_turns

TITLE = "Append"
TEXT = (
    "A leader appends uncompressed batches of 1 KB records (unless a row names others) one by one: header and "
    "checksum are checked, every record is validated by the compiled kernel, offset and epoch are set, the batch is "
    "written and indexed. This is compared with `crc32c` and `os.pwrite` of the same bytes, which is the least work "
    "that a log could do. Both read the bytes from one buffer, which is filled again each time like a connection's "
    "buffer. The figures are CPU time of the process with the kernel's part, because other work on the machine "
    "disturbs CPU time less than wall time.\n\n"
    "A batch of one record takes 8 µs more than its write, a batch of 128 KB about 14 µs more: for two index "
    "entries, for its records, and because the write has pushed the interpreter's code out of the caches."
)
TOTAL = 512 * 2**20
MAX_APPENDS = 50_000


def run(rounds: int = 5) -> list[Row]:
    rows = []
    for size, record_size, goal in (
        (100, 100, None),
        (16 * 2**10, 1000, None),
        (128 * 2**10, 1000, 0.85),
        (2**20, 1000, 0.85),
        (128 * 2**10, 100, None),
    ):
        batch = batch_of(size, record_size)
        count = min(TOTAL // len(batch), MAX_APPENDS)

        def ours(batch: bytes = batch, count: int = count) -> float:
            folder = Path(tempfile.mkdtemp(dir="."))
            log = open_at(folder / "bench-0")
            buffer = bytearray(batch)
            start = time.process_time()
            for _ in range(count):
                buffer[:] = batch
                log.append_as_leader(buffer, leader_epoch=0, now_ms=NOW_MS)
            elapsed = time.process_time() - start
            log.abandon()
            shutil.rmtree(folder)
            return elapsed / count

        def plain(batch: bytes = batch, count: int = count) -> float:
            folder = Path(tempfile.mkdtemp(dir="."))
            descriptor = os.open(folder / "plain", os.O_CREAT | os.O_RDWR)
            position = 0
            buffer = bytearray(batch)
            start = time.process_time()
            for _ in range(count):
                buffer[:] = batch
                crc32c(buffer)
                os.pwrite(descriptor, buffer, position)
                position += len(buffer)
            elapsed = time.process_time() - start
            os.close(descriptor)
            shutil.rmtree(folder)
            return elapsed / count

        mine, theirs = take_turns(rounds, ours, plain)
        ratio = theirs / mine
        name = f"{size // 1024} KB batches" if size >= 1024 else "batches of one record"
        name += "" if record_size == 1000 else f" of {record_size} B"
        rows.append(
            Row(
                name,
                f"{mine * 1e6:.1f} µs, {len(batch) / mine / 1e9:.2f} GB/s",
                f"pwrite + CRC: {theirs * 1e6:.1f} µs",
                ratio,
                f"≥ {goal}" if goal else "",
                ratio >= goal if goal else None,
            )
        )
    return rows
