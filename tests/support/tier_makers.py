"""Stores in each layout, and a small log to copy into them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tailrace.log.disk.files import DiskFiles
from tailrace.log.partition_log import PartitionLog
from tailrace.tiers.stores.aiven.aiven_store import AivenStore
from tailrace.tiers.stores.aiven.blobs import DiskBlobs
from tailrace.tiers.stores.local_store import LocalStore
from tailrace.tiers.stores.remote_store import RemoteStore
from tests.support.small_logs import NOW_MS, append, end_transaction, open_small, replicate

FILES = DiskFiles()
Make = Callable[[str], RemoteStore]
LAYOUTS: dict[str, Make] = {
    "local": lambda directory: LocalStore(directory, FILES, lambda: 0),
    "aiven": lambda directory: AivenStore(DiskBlobs(directory, FILES), FILES, lambda: 0, chunk_size=1000),
    "aiven compressed": lambda directory: AivenStore(
        DiskBlobs(directory, FILES), FILES, lambda: 0, chunk_size=1000, compress=True
    ),
}


def small_log(folder: Path, segments: int = 3) -> PartitionLog:
    """Make a log with an aborted transaction in its second segment."""
    FILES.make_directory(str(folder))
    log = open_small(FILES, {"index.interval.bytes": "200"}, folder=str(folder))
    for part in range(segments):
        for number in range(30):
            append(log, f"{part} {number} ".encode() * 10, timestamp=NOW_MS + part * 1000 + number)
        if part == 1:
            append(log, b"aborted", producer_id=7, producer_epoch=0, sequence=0, transactional=True)
            end_transaction(log, 7, commit=False)
        replicate(log)
        log.roll(NOW_MS)
    return log
