"""The table of APIs in docs/reference/compatibility.md."""

from __future__ import annotations

import runpy
from pathlib import Path

from tailrace.broker.requests.api_table import API_TABLE, TELEMETRY_TABLE

ROOT = Path(__file__).resolve().parents[3]


def test_the_page_is_in_step_with_the_table_and_the_docstrings() -> None:
    script = runpy.run_path(str(ROOT / "scripts" / "make_compatibility.py"))
    text = (ROOT / "docs" / "reference" / "compatibility.md").read_text()
    assert script["page"](text) == text, "run scripts/make_compatibility.py"
    assert all(f"| {key} | " in text for key in API_TABLE | TELEMETRY_TABLE)
