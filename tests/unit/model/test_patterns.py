"""Patterns that clients send: their matches, and the limits of their cost."""

from __future__ import annotations

import sys

import pytest

from tailrace.model import patterns
from tailrace.model.patterns import MATCH_COST_MAX, UnusablePattern, compile_pattern


def test_a_pattern_matches_the_whole_text() -> None:
    pattern = compile_pattern("orders-[0-9]+")
    assert pattern.matches("orders-17")
    assert not pattern.matches("my orders-17")


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("(", "missing"),
        ("a" * 20_000, "20000 characters"),
        ("(.{0,900})" * 1_000, "largest repetition count is 900"),
        ("(t|.)?" * 2_000, "instructions"),
        ("a{5000}", "repetition"),
    ],
)
def test_an_expensive_or_invalid_pattern_is_refused(pattern: str, reason: str) -> None:
    with pytest.raises(UnusablePattern, match=reason):
        compile_pattern(pattern)


def test_a_pattern_with_a_large_count_is_accepted_if_it_is_short() -> None:
    assert compile_pattern("[a-z]{1,249}").matches("orders")


def test_braces_that_are_not_a_repetition_count_are_literal_text() -> None:
    assert compile_pattern("a{" + "9" * 50 + "}").matches("a{" + "9" * 50 + "}")


def test_a_text_that_is_too_expensive_to_match_does_not_match() -> None:
    pattern = compile_pattern("(t|.)?" * 700)
    assert pattern.matches("t" * 100)
    assert not pattern.matches("t" * (MATCH_COST_MAX // pattern.size + 1))


def test_without_re2_every_pattern_is_refused_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "re2", None)
    patterns._engine.cache_clear()
    with pytest.raises(UnusablePattern, match="its Python has no google-re2"):
        compile_pattern("orders-.*")
    monkeypatch.undo()
    assert compile_pattern("orders-.*").matches("orders-1")
