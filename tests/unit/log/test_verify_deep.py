"""The compiled walk over records passes only what the walk that finds words has nothing to say about."""

from __future__ import annotations

from pathlib import Path

import pytest

from tailrace.log.directories.data_directory import read_data_directory
from tailrace.log.disk.files import DiskFiles
from tailrace.log.inspect import verify_segment
from tailrace.log.inspect.verify import verify_partition
from tailrace.records.batch import RecordBatch
from tailrace.records.builder import assemble_batch
from tailrace.records.kernels import encode_record
from tests.support.command import write_directory
from tests.support.damaged_logs import all_logs, damage

FILES = DiskFiles()


@pytest.mark.long
@pytest.mark.parametrize("seed", [None, 21, 22, 23])
def test_the_findings_are_the_same_without_the_fast_check_of_batches(
    seed: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = all_logs(tmp_path / "data")
    if seed is not None:
        damage(path, seed)
    folders = read_data_directory(FILES, str(path)).folders
    quick = [verify_partition(FILES, folder, deep=True) for folder in folders]
    monkeypatch.setattr(verify_segment, "_passes_fast_check", lambda header, view: False)
    assert [verify_partition(FILES, folder, deep=True) for folder in folders] == quick


def records(*rows: tuple[int, int, int]) -> bytes:
    """Return records given as offset delta, timestamp delta, and the excess of the length field in bytes."""
    out = bytearray()
    for offset_delta, timestamp_delta, excess in rows:
        start = len(out)
        encode_record(out, offset_delta, timestamp_delta, b"k", b"v", [])
        out[start] += 2 * excess
    return bytes(out)


@pytest.mark.parametrize(
    ("payload", "count", "largest", "finding"),
    [
        (records((0, 0, 0), (1, 5, 0)), 2, 1005, None),
        (records((0, 0, 0), (1, 5, 0)), 2, 1004, "largest timestamp is 1004, but that of its records is 1005"),
        (records((1, 0, 0), (0, 5, 0)), 2, 1005, "does not lie between"),
        (records((0, 0, 0), (1, 5, 1)), 2, 1005, "record 1 is broken"),
        (records((0, 0, 0)), 2, 1000, "record 1 is broken"),
    ],
    ids=["right", "timestamp", "order", "size", "count"],
)
def test_damage_inside_a_batch_is_reported(
    payload: bytes, count: int, largest: int, finding: str | None, tmp_path: Path
) -> None:
    path = write_directory(tmp_path / "data", "plain")
    folder = path / "plain-0"
    last = sorted(folder.glob("*.log"))[-1]
    base = int(last.name[:20])
    data = assemble_batch(
        payload,
        base_offset=base,
        last_offset=base + 1,
        base_timestamp=1000,
        max_timestamp=largest,
        attributes=0,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        leader_epoch=0,
        record_count=count,
    )
    RecordBatch(memoryview(data)).check()
    last.write_bytes(data)
    found = [
        finding.message
        for finding in verify_partition(FILES, read_data_directory(FILES, str(folder)).folders[0], deep=True).problems
        if finding.path == str(last)
    ]
    assert (finding is None and found == []) or (finding is not None and len(found) == 1 and finding in found[0])
