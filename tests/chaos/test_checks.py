"""The checks find what they are for: each is given a history in which one thing is wrong."""

from __future__ import annotations

from array import array
from collections.abc import Iterable

import pytest

from tests.chaos.checks import (
    check_atomic,
    check_idempotent,
    check_offsets,
    check_seen,
    check_transactions,
    check_transformed,
)
from tests.chaos.findings import Findings
from tests.chaos.plan import ACTIVE, make_plan
from tests.chaos.producers import NOT_ACKNOWLEDGED, record_value
from tests.chaos.watchers import Seen

GOOD = [(offset, record_value("a", offset)) for offset in range(5)]
ACKNOWLEDGED = array("q", [0, 1, 2, 3, NOT_ACKNOWLEDGED])


def reasons(found: Iterable[str]) -> str:
    return "; ".join(found)


def test_a_log_that_is_well_gives_no_reasons() -> None:
    assert reasons(check_offsets("t-0", GOOD)) == ""
    assert reasons(check_idempotent("t-0", GOOD, "a", ACKNOWLEDGED)) == ""


def test_a_record_without_an_answer_may_be_there_or_not() -> None:
    assert reasons(check_idempotent("t-0", GOOD[:4], "a", ACKNOWLEDGED)) == ""


@pytest.mark.parametrize(
    ("log", "reason"),
    [
        (GOOD[:2] + GOOD[3:], "1 acknowledged records of a are not at their offsets: (2, 2)"),
        ([*GOOD, (5, record_value("a", 3))], "1 records of a are there more than once: (3, [3, 5])"),
        ([*GOOD, (5, record_value("a", 3))], "records of a are out of order: (5, 3)"),
        ([*GOOD[:3], (3, b"a 3 other"), GOOD[4]], "records of a are not as they were sent: 3"),
    ],
)
def test_what_is_wrong_with_an_idempotent_producers_records_is_said(log: list[tuple[int, bytes]], reason: str) -> None:
    assert reason in reasons(check_idempotent("t-0", log, "a", ACKNOWLEDGED))


def transactions(*numbers: int) -> list[tuple[int, bytes]]:
    return [(offset, b"t %d" % number) for offset, number in enumerate(numbers)]


@pytest.mark.parametrize(
    ("numbers", "reason"),
    [
        ((1, 1, 1, 3, 3, 3), ""),
        ((1, 1, 1), "committed transactions of t are missing: 3"),
        ((1, 1, 1, 2, 2, 2, 3, 3, 3), "aborted transactions of t are visible: 2"),
        ((3, 3, 3, 1, 1, 1), "transactions of t are out of order"),
        ((1, 1, 1, 3, 3), "there in part, or twice: (3, 2)"),
    ],
)
def test_what_is_wrong_with_transactions_is_said(numbers: tuple[int, ...], reason: str) -> None:
    found = reasons(check_transactions("t-0", 0, transactions(*numbers), "t", {1: [0], 3: [0, 1], 4: [1]}, {2: [0]}))
    assert reason in found
    assert bool(found) == bool(reason)


def test_a_transaction_of_unknown_end_is_everywhere_or_nowhere() -> None:
    unknown = {7: [0, 1], 8: [0, 1]}
    assert reasons(check_atomic("t", unknown, {0: {7}, 1: {7}})) == ""
    assert reasons(check_atomic("t", unknown, {0: {7, 8}, 1: {7}})) == (
        "transaction 8 of t is visible in [0] only, of [0, 1]"
    )


def test_each_input_counts_once_and_in_order() -> None:
    source = [(0, b"x"), (1, b"y")]
    assert reasons(check_transformed("o-0", source, [(0, b"x"), (2, b"y")])) == ""
    assert "3 of 2 inputs, the first difference at number 1" in reasons(
        check_transformed("o-0", source, [(0, b"x"), (2, b"x"), (3, b"y")])
    )
    assert "1 of 2 inputs" in reasons(check_transformed("o-0", source, [(0, b"x")]))


def seen_of(offsets: list[int]) -> Seen:
    seen = Seen()
    for offset in offsets:
        seen.add(offset, GOOD[offset][1])
    return seen


def test_a_reader_saw_what_is_there() -> None:
    seen = seen_of([0, 1, 2, 3])
    assert reasons(check_seen("t-0", GOOD, seen)) == ""
    assert "records were read that are not there: 3" in reasons(check_seen("t-0", GOOD[:3], seen))
    assert "a reader was not shown 2" in reasons(check_seen("t-0", GOOD, seen_of([0, 1, 3])))
    changed = [*GOOD[:2], (2, b"other"), *GOOD[3:]]
    assert "records are not what a reader saw at their offsets: 2" in reasons(check_seen("t-0", changed, seen))


def test_a_plan_is_made_by_its_seed_and_ends_in_time() -> None:
    plan = make_plan(7, 600, ["1", "2", "3"], 3)
    assert plan == make_plan(7, 600, ["1", "2", "3"], 3)
    assert plan != make_plan(8, 600, ["1", "2", "3"], 3)
    assert all(one.until_s < 600 for one in plan)
    assert {one.node for one in plan} == {"1", "2", "3", ACTIVE}
    assert {one.kind for one in plan} == {
        *("kill", "pause", "leave", "apart", "deposed", "unheard", "speechless", "slow"),
    }


def test_what_is_wrong_is_more_than_late() -> None:
    findings = Findings()
    findings.add("not in sync", is_late=True)
    assert findings.are_all_late
    findings.add("a record is lost")
    findings.add("not in sync", is_late=True)
    assert not findings.are_all_late
    assert len(findings.found) == 3
