"""LimitedLog writes one line for many similar events, and counts the others."""

from __future__ import annotations

import logging

import pytest

from tailrace.diagnostics.limited_log import INTERVAL_MS, KINDS_MAX, LimitedLog


def test_the_first_line_is_written_and_the_next_ones_are_counted(caplog: pytest.LogCaptureFixture) -> None:
    log = LimitedLog(logging.getLogger("test.limited"))
    written = [
        log.write(logging.WARNING, "noise", now_ms, "hello", client="me") for now_ms in range(0, 2 * INTERVAL_MS, 10)
    ]
    assert written.count(True) == 2
    reported = [(record.getMessage(), record.__dict__["fields"]) for record in caplog.records]
    assert reported == [("hello", {"client": "me"}), ("hello", {"client": "me", "suppressed": 999})]


def test_other_kinds_are_counted_apart(caplog: pytest.LogCaptureFixture) -> None:
    log = LimitedLog(logging.getLogger("test.limited"))
    assert log.write(logging.WARNING, "a", 0, "one")
    assert log.write(logging.ERROR, "b", 0, "two")
    assert not log.write(logging.WARNING, "a", 1, "three")
    assert [(record.levelno, record.getMessage()) for record in caplog.records] == [(30, "one"), (40, "two")]


def test_kinds_beyond_the_limit_are_one_kind_until_the_others_are_old(caplog: pytest.LogCaptureFixture) -> None:
    log = LimitedLog(logging.getLogger("test.limited"))
    assert all(log.write(logging.INFO, str(number), 0, "first") for number in range(KINDS_MAX))
    written = [log.write(logging.INFO, f"more {number}", 0, "beyond") for number in range(1_000)]
    assert written.count(True) == 1
    assert not log.write(logging.INFO, "0", 1, "a known kind is still limited")
    later = [log.write(logging.INFO, f"more {number}", INTERVAL_MS, "later") for number in range(1_000)]
    assert later.count(True) == KINDS_MAX + 1, "old kinds keep the place of new ones"
