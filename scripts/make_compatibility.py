"""Write the table of APIs in docs/reference/compatibility.md from the broker's API table and the handlers' docstrings.

python scripts/make_compatibility.py            rewrite the page
python scripts/make_compatibility.py --check    fail if the page is out of step
"""

from __future__ import annotations

import re
import sys
from importlib import import_module
from pathlib import Path

from tailrace.broker.requests.api_table import API_TABLE, TELEMETRY_TABLE, ApiRow
from tailrace.protocol.api_keys import api

PAGE = Path(__file__).resolve().parent.parent / "docs" / "reference" / "compatibility.md"
BEGIN = "<!-- APIs: written by scripts/make_compatibility.py -->"
END = "<!-- end of APIs -->"
_ITEM = re.compile(r"[^:]+: ")  # missing feature: what happens instead


def missing(row: ApiRow) -> str:
    """Return, in one line, the features that a handler's docstring lists as not implemented."""
    text = import_module(row.module).__doc__ or ""
    _, _, output = text.partition("\nNot implemented\n")
    lines: list[str] = []
    for line in output.splitlines():
        if not line.startswith("    "):
            break
        line = line.strip()
        if lines and not _ITEM.match(line):
            lines[-1] += f" {line}"
        else:
            lines.append(line)
    return "; ".join(lines).replace("|", "\\|")


def table() -> str:
    rows = ["| key | API | versions | not implemented |", "|---|---|---|---|"]
    for key, row in sorted((API_TABLE | TELEMETRY_TABLE).items()):
        last = "" if row.min_version == row.max_version else f"–{row.max_version}"
        rows.append(f"| {key} | {api(key).name} | {row.min_version}{last} | {missing(row)} |")
    return "\n".join(rows)


def page(text: str) -> str:
    """Return the page with the current table."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise SystemExit(f"{PAGE.name} has no place for the table")
    return f"{before}{BEGIN}\n\n{table()}\n\n{END}{after}"


def main() -> int:
    text = PAGE.read_text()
    wanted = page(text)
    if "--check" in sys.argv[1:]:
        if text != wanted:
            print(f"{PAGE.name} is out of step: run scripts/make_compatibility.py", file=sys.stderr)
            return 1
        return 0
    PAGE.write_text(wanted)
    return 0


if __name__ == "__main__":
    sys.exit(main())
