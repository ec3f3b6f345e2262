"""Examples of the documents that need Spark run unchanged."""

from __future__ import annotations

import os

import pytest

from tailrace.java import JavaMissing, find_java
from tests.support.doc_page import Page, all_pages
from tests.support.doc_runner import run_apart

ON_SPARK = [page for page in all_pages() if "spark" in page.needs and "kafka" not in page.needs]


@pytest.mark.slow
@pytest.mark.parametrize("page", ON_SPARK, ids=lambda page: page.name)
def test_examples_with_spark_run_unchanged(page: Page) -> None:
    try:
        find_java("Spark", os.environ)
    except JavaMissing as why:
        if os.environ.get("TAILRACE_REQUIRE_SPARK") == "1":
            pytest.fail(f"no Spark: {why}", pytrace=False)
        pytest.skip(f"no Spark: {why}")
    run_apart(page, "--all")
