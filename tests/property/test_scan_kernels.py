"""The loops that recovery is made of, compiled and interpreted, on good bytes and on hostile ones."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tailrace.log.recovery import scan_kernels as compiled
from tailrace.records.batch import RecordBatch
from tests.support.batches import batch
from tests.support.interpreted import interpreted as interpreted_form

interpreted = interpreted_form(compiled)


def placed(offset: int, epoch: int, values: int, **fields: Any) -> bytes:
    data = bytearray(batch(*[b"value"] * values, sequence=0 if fields.get("producer_id", -1) >= 0 else -1, **fields))
    RecordBatch(memoryview(data)).set_offset_and_epoch(offset, epoch)
    return bytes(data)


batches = st.builds(
    placed,
    st.integers(100, 112),
    st.integers(-1, 4),
    st.integers(1, 3),
    timestamp=st.integers(0, 2**40),
    producer_id=st.sampled_from([-1, 7]),
)


def scanned(kernels: Any, data: bytes, limits: tuple[int, int, int], position: int) -> Any:
    scan = kernels.SegmentScan(100, *limits)
    scan.leader_epoch = 3
    produced: list[memoryview] = []
    whole = kernels.whole_batches(data, len(data))
    end = scan.take_plain(memoryview(data)[:whole], 0, position, produced)
    last = scan.next_offset
    scan.take(position + end, 100, last, 5)
    scan.note_time()
    facts = [scan.next_offset, scan.largest_timestamp, scan.largest_offset, scan.offset_entries, scan.time_entries]
    return whole, end, [bytes(view) for view in produced], facts


@pytest.mark.skipif(not compiled.COMPILED, reason="the kernels were not compiled here")
@settings(max_examples=200)
@given(
    found=st.lists(batches, max_size=6),
    damage=st.lists(st.tuples(st.integers(0, 400), st.integers(0, 255)), max_size=2),
    cut=st.integers(0, 80),
    limits=st.tuples(
        st.one_of(st.integers(100, 120), st.integers(100, 2**63 - 1)),
        st.integers(0, 200),
        st.sampled_from([0, 105, 2**63 - 1]),
    ),
)
def test_compiled_and_interpreted_agree(
    found: list[bytes], damage: list[tuple[int, int]], cut: int, limits: tuple[int, int, int]
) -> None:
    data = bytearray(b"".join(found))
    for position, value in damage:
        if position < len(data):
            data[position] = value
    data = data[: max(len(data) - cut, 0)]
    assert scanned(compiled, bytes(data), limits, 4096) == scanned(interpreted, bytes(data), limits, 4096)


@pytest.mark.parametrize("kernels", [compiled, interpreted], ids=["as installed", "interpreted"])
def test_a_run_ends_before_the_first_unusual_batch(kernels: Any) -> None:
    good = placed(100, 3, 2) + placed(102, 3, 1, producer_id=7)
    flipped = bytearray(placed(103, 3, 1))
    flipped[70] ^= 1
    odd = {
        "newer epoch": placed(103, 4, 1),
        "gap": placed(104, 3, 1),
        "step back": placed(102, 3, 1),
        "past the end": placed(103, 3, 3),
        "checksum": bytes(flipped),
    }
    for name, data in odd.items():
        scan = kernels.SegmentScan(100, 105, 4096, 0)
        scan.leader_epoch = 3
        produced: list[memoryview] = []
        view = memoryview(good + data)
        assert scan.take_plain(view, 0, 0, produced) == len(good), name
        assert (scan.next_offset, len(produced)) == (103, 1)
    assert kernels.whole_batches(good + good[:-1], 2 * len(good) - 1) == len(good) + len(placed(100, 3, 2))


@pytest.mark.parametrize("kernels", [compiled, interpreted], ids=["as installed", "interpreted"])
def test_a_range_outside_the_bytes_is_refused(kernels: Any) -> None:
    with pytest.raises(ValueError, match="past the 3 bytes"):
        kernels.whole_batches(b"abc", 4)
    with pytest.raises(ValueError, match="not inside"):
        kernels.SegmentScan(0, 10, 4096, 0).take_plain(memoryview(b"abc"), 4, 0, [])
