"""Each check finds the violation that it is for: the test passes a history with one violation."""

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


def test_a_correct_log_has_no_violations() -> None:
    assert reasons(check_offsets("t-0", GOOD)) == ""
    assert reasons(check_idempotent("t-0", GOOD, "a", ACKNOWLEDGED)) == ""


def test_a_record_that_was_not_acknowledged_may_be_missing() -> None:
    assert reasons(check_idempotent("t-0", GOOD[:4], "a", ACKNOWLEDGED)) == ""


@pytest.mark.parametrize(
    ("log", "reason"),
    [
        (GOOD[:2] + GOOD[3:], "1 acknowledged records of a are not at their offsets: (2, 2)"),
        ([*GOOD, (5, record_value("a", 3))], "1 records of a are in the log more than once: (3, [3, 5])"),
        ([*GOOD, (5, record_value("a", 3))], "records of a are out of order: (5, 3)"),
        ([*GOOD[:3], (3, b"a 3 other"), GOOD[4]], "records of a differ from the sent records: 3"),
    ],
)
def test_each_violation_in_the_records_of_an_idempotent_producer_is_reported(
    log: list[tuple[int, bytes]], reason: str
) -> None:
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
        ((1, 1, 1, 3, 3), "are incomplete or duplicated: (3, 2)"),
    ],
)
def test_each_violation_in_the_records_of_transactions_is_reported(numbers: tuple[int, ...], reason: str) -> None:
    found = reasons(check_transactions("t-0", 0, transactions(*numbers), "t", {1: [0], 3: [0, 1], 4: [1]}, {2: [0]}))
    assert reason in found
    assert bool(found) == bool(reason)


def test_a_transaction_with_unknown_outcome_in_one_of_two_partitions_is_reported() -> None:
    unknown = {7: [0, 1], 8: [0, 1]}
    assert reasons(check_atomic("t", unknown, {0: {7}, 1: {7}})) == ""
    assert reasons(check_atomic("t", unknown, {0: {7, 8}, 1: {7}})) == (
        "transaction 8 of t is visible in [0] only, of [0, 1]"
    )


def test_missing_and_duplicate_transformed_records_are_reported() -> None:
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


def test_lost_skipped_and_changed_records_are_reported_for_a_reader() -> None:
    seen = seen_of([0, 1, 2, 3])
    assert reasons(check_seen("t-0", GOOD, seen)) == ""
    assert "a reader saw records that are no longer in the log: 3" in reasons(check_seen("t-0", GOOD[:3], seen))
    assert "a reader missed offsets 2" in reasons(check_seen("t-0", GOOD, seen_of([0, 1, 3])))
    changed = [*GOOD[:2], (2, b"other"), *GOOD[3:]]
    assert "records differ from what a reader saw at their offsets: 2" in reasons(check_seen("t-0", changed, seen))


def test_a_plan_is_determined_by_its_seed_and_ends_before_the_run() -> None:
    plan = make_plan(7, 600, ["1", "2", "3"], 3)
    assert plan == make_plan(7, 600, ["1", "2", "3"], 3)
    assert plan != make_plan(8, 600, ["1", "2", "3"], 3)
    assert all(one.until_s < 600 for one in plan)
    assert {one.node for one in plan} == {"1", "2", "3", ACTIVE}
    assert {one.kind for one in plan} == {
        *("kill", "pause", "leave", "apart", "deposed", "unheard", "speechless", "slow"),
    }


def test_findings_are_all_late_only_without_a_wrong_result() -> None:
    findings = Findings()
    findings.add("not in sync", is_late=True)
    assert findings.are_all_late
    findings.add("a record is lost")
    findings.add("not in sync", is_late=True)
    assert not findings.are_all_late
    assert len(findings.found) == 3
