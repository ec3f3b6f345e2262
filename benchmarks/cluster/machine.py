"""The machine of the benchmark: memory in the state of a machine that has been used, and the speed of its disk."""

from __future__ import annotations

import mmap
import os
import time
from pathlib import Path

FREE_BYTES = 512_000_000
PIECE_BYTES = 4_194_304


def fill_page_cache(directory: Path) -> None:
    """Leave almost no memory free, as on any machine that has read and written files for a while.

    A virtual machine may have to request every page from its host that was never used or was free for some seconds.
    That takes seconds of CPU per GB, more than a broker needs, and would count as the broker's. Pages from the page
    cache are already assigned to the machine. The file that is read here has no blocks.
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
    raise ValueError("/proc/meminfo does not show the free memory")


def disk_bytes_per_s(directory: Path, size: int) -> float:
    """Return how many bytes per second are written to the disk past the page cache."""
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
