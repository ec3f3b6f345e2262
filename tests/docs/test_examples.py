"""The examples of every page run unchanged."""

from __future__ import annotations

import pytest

from tests.support.doc_page import Page, all_pages, missing_lines
from tests.support.doc_runner import run_apart

PAGES = all_pages()


@pytest.mark.parametrize("page", [page for page in PAGES if page.has_plain_steps], ids=lambda page: page.name)
def test_examples_of_a_page_run_unchanged(page: Page) -> None:
    run_apart(page)


@pytest.mark.slow
@pytest.mark.parametrize("page", [page for page in PAGES if page.needs == {"slow"}], ids=lambda page: page.name)
def test_long_examples_of_a_page_run_unchanged(page: Page) -> None:
    run_apart(page, "--all")


@pytest.mark.slow
@pytest.mark.kafka
@pytest.mark.parametrize("page", [page for page in PAGES if "kafka" in page.needs], ids=lambda page: page.name)
def test_examples_with_kafkas_tools_run_unchanged(page: Page) -> None:
    run_apart(page, "--all")


def test_an_example_that_is_not_run_has_a_reason() -> None:
    shown_only = [example for page in PAGES for example in page.examples if example.why_not_run]
    assert [example.place for example in shown_only if len(example.why_not_run) < 10] == []


def test_lines_that_differ_only_in_numbers_and_identifiers_are_the_same() -> None:
    shown = ["orders-0  12  2026-01-31 12:00:00.123  hello", "…", "id Tgg-VlSlOSJBVRC8s8Ws6Q · 3 …"]
    output = "first\norders-0\t7\t2027-02-01 13:00:00.456\thello\nmore\nid a-8fSyLQR6WkiDR_ycN0HQ · 17 records\n"
    assert missing_lines(shown, output) == []


def test_a_line_that_is_not_printed_is_missing() -> None:
    assert missing_lines(["hello", "world"], "world\nhello\n") == ["world"]
