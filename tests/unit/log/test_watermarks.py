"""The bounds of a log and their order."""

from __future__ import annotations

import pytest

from tailrace.log.segments.position import LogPosition
from tailrace.log.watermarks import Isolation, Watermarks

END = LogPosition(100, 0, 5000)
HIGH = LogPosition(80, 0, 4000)


def test_without_an_open_transaction_everything_replicated_is_stable() -> None:
    marks = Watermarks(10, END, HIGH)
    assert marks.last_stable == HIGH
    assert (marks.log_end_offset, marks.high_watermark_offset, marks.last_stable_offset) == (100, 80, 80)


def test_an_open_transaction_holds_the_last_stable_offset_at_its_start() -> None:
    assert Watermarks(10, END, HIGH, LogPosition(40)).last_stable_offset == 40


def test_a_transaction_that_starts_past_the_high_watermark_does_not_raise_the_last_stable_offset() -> None:
    assert Watermarks(10, END, HIGH, LogPosition(90)).last_stable_offset == 80


def test_the_isolation_selects_the_upper_bound() -> None:
    marks = Watermarks(10, END, HIGH, LogPosition(40))
    assert marks.bound(Isolation.LOG_END) == END
    assert marks.bound(Isolation.READ_UNCOMMITTED) == HIGH
    assert marks.bound(Isolation.READ_COMMITTED) == LogPosition(40)


def test_bounds_in_order_pass_the_check() -> None:
    Watermarks(0, LogPosition(0), LogPosition(0)).check()
    Watermarks(10, END, HIGH, LogPosition(40)).check()


@pytest.mark.parametrize(
    "marks",
    [
        Watermarks(-1, END, HIGH),
        Watermarks(81, END, HIGH),
        Watermarks(10, END, LogPosition(101)),
        Watermarks(10, END, HIGH, LogPosition(9)),
    ],
)
def test_bounds_out_of_order_fail_the_check(marks: Watermarks) -> None:
    with pytest.raises(AssertionError):
        marks.check()
