"""Records that were checked on a worker thread: a refusal is kept and raised without its callers."""

from __future__ import annotations

import gc
import weakref
from copy import copy

import pytest

from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.records.checks.checked_records import CheckedRecords
from tailrace.records.checks.record_rules import RecordsRefused


def test_a_refusal_is_raised_with_all_its_fields() -> None:
    refusal = RecordsRefused(ErrorCode.INVALID_RECORD, "two records", [(1, "no key"), (3, "no key")])
    with pytest.raises(RecordsRefused, match="two records") as caught:
        CheckedRecords(10, None, refusal=refusal).accepted()
    assert (caught.value.code, caught.value.record_errors) == (ErrorCode.INVALID_RECORD, refusal.record_errors)
    assert caught.value is not refusal


def test_a_raised_refusal_is_freed_without_the_garbage_collector() -> None:
    class Refusal(KafkaError):
        pass

    gc.disable()
    try:
        kept = Refusal(ErrorCode.CORRUPT_MESSAGE, "broken")
        checked = CheckedRecords(10, None, refusal=copy(kept))
        assert checked.refusal is not None
        is_alive = weakref.ref(checked.refusal)
        with pytest.raises(Refusal):
            checked.accepted()
        del checked
        assert is_alive() is None
    finally:
        gc.enable()
