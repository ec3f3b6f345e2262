"""The machine that both kinds run on: memory as it is after a day at work, and what its disk takes."""

from __future__ import annotations

import mmap
import os
import time
from pathlib import Path

FREE_BYTES = 512_000_000
PIECE_BYTES = 4_194_304


def fill_page_cache(directory: Path) -> None:
    """Leave next to no memory free, as it is wherever files have been read and written for a while.

    A virtual machine may have to ask its host for every page that was never used, or was free for some seconds: seconds
    of CPU for a GB, more than a broker takes for it, and counted as the broker's. Pages that are taken from the cache
    are the machine's already. What is read here is a file without any blocks.
    """
    path = directory / "page-cache"
    begin = path.stat().st_size if path.exists() else 0
    end = begin + max(_free_bytes() - FREE_BYTES, 0)
    piece = bytearray(PIECE_BYTES)
    with path.open("ab") as file:
        file.truncate(end)
    with path.open("rb", buffering=0) as file:
        for position in range(begin, end, PIECE_BYTES):
            os.preadv(file.fileno(), [piece], position)


def _free_bytes() -> int:
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemFree:"):
            return int(line.split()[1]) * 1024
    raise ValueError("/proc/meminfo does not tell what memory is free")


def disk_bytes_per_s(directory: Path, size: int) -> float:
    """How fast plain bytes get to the disk past the page cache."""
    path = directory / "disk"
    piece = mmap.mmap(-1, PIECE_BYTES)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_DIRECT)
    try:
        began = time.perf_counter()
        for position in range(0, size, PIECE_BYTES):
            os.pwrite(descriptor, piece, position)
        os.fsync(descriptor)
        return size / (time.perf_counter() - began)
    finally:
        os.close(descriptor)
        path.unlink()
