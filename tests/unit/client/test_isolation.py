from __future__ import annotations

from typing import NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st

from tailrace.client.visible_batches import may_start_before, next_offset, visible_batches
from tailrace.records.batch import Codec, RecordBatch
from tailrace.records.conversion import split_any
from tailrace.records.legacy import build_messages
from tailrace.records.record import Record, TimestampType
from tests.support.batches import batch, end_marker


class Step(NamedTuple):
    """A step of one producer: write outside a transaction, write inside one, or end it."""

    producer: int
    kind: str


steps = st.lists(st.builds(Step, st.integers(1, 3), st.sampled_from(["plain", "write", "write", "commit", "abort"])))


class Log:
    """The batches of a leader, those that a read_committed reader sees, and the aborted transactions."""

    def __init__(self, steps: list[Step]) -> None:
        self.batches: list[RecordBatch] = []
        self.committed: list[int] = []  # base offsets
        self.aborted: list[tuple[int, int, int]] = []  # producer, first offset, offset of the marker
        ongoing: dict[int, list[int]] = {}
        offset = 0
        for producer, kind in steps:
            if kind in ("commit", "abort"):
                data = end_marker(producer, commit=kind == "commit")
                written = ongoing.pop(producer, [])
                if kind == "commit":
                    self.committed += written
                elif written:
                    self.aborted.append((producer, written[0], offset))
            elif kind == "write":
                data = batch(b"a", b"b", producer_id=producer, sequence=0, transactional=True)
                ongoing.setdefault(producer, []).append(offset)
            else:
                data = batch(b"c")
                self.committed.append(offset)
            one = RecordBatch(memoryview(data))
            one.set_offset_and_epoch(offset, 0)
            offset = one.next_offset
            self.batches.append(one)
        undecided = [written[0] for written in ongoing.values()]
        self.last_stable_offset = min(undecided, default=offset)

    def fetch(self, start: int) -> tuple[list[RecordBatch], list[tuple[int, int]]]:
        """Return the stable batches from a batch on, and the aborted transactions that overlap with them."""
        batches = [one for one in self.batches[start:] if one.base_offset < self.last_stable_offset]
        if not batches:
            return [], []
        low, high = batches[0].base_offset, batches[-1].next_offset
        return batches, [(who, first) for who, first, last in self.aborted if last >= low and first < high]


@settings(max_examples=200, deadline=None)
@given(steps, st.integers(0, 10))
def test_committed_records_are_visible_from_every_start_offset(steps: list[Step], start: int) -> None:
    log = Log(steps)
    batches, aborted = log.fetch(start)
    seen = [one.base_offset for one in visible_batches(batches, aborted)]
    within = range(batches[0].base_offset, batches[-1].next_offset) if batches else range(0)
    assert seen == sorted(offset for offset in log.committed if offset in within)


@settings(max_examples=50, deadline=None)
@given(steps)
def test_without_a_list_of_aborted_transactions_only_control_batches_are_dropped(steps: list[Step]) -> None:
    batches = Log(steps).batches
    assert list(visible_batches(batches)) == [one for one in batches if not one.is_control]


def test_batches_of_a_producer_are_visible_again_after_its_abort_marker() -> None:
    log = Log([Step(1, "write"), Step(1, "abort"), Step(1, "write"), Step(1, "commit"), Step(1, "plain")])
    batches, aborted = log.fetch(0)
    assert aborted == [(1, 0)]
    assert [one.base_offset for one in visible_batches(batches, aborted)] == [3, 6]


def test_messages_of_old_formats_are_visible() -> None:
    records = [Record(offset, 5, TimestampType.CREATE_TIME, None, b"v") for offset in (3, 4)]
    plain = list(split_any(build_messages(records, magic=1)))
    (wrapper,) = split_any(build_messages(records, magic=1, codec=Codec.GZIP))
    assert list(visible_batches([*plain, wrapper], [(1, 0)])) == [*plain, wrapper]
    assert [next_offset(one) for one in (*plain, wrapper)] == [4, 5, 5]
    assert [may_start_before(one, 4) for one in (*plain, wrapper)] == [True, False, True]


def test_a_batch_may_start_only_before_offsets_above_its_base_offset() -> None:
    one = RecordBatch(memoryview(batch(b"a", b"b")))
    one.set_offset_and_epoch(7, 0)
    assert next_offset(one) == 9
    assert (may_start_before(one, 8), may_start_before(one, 7)) == (True, False)
