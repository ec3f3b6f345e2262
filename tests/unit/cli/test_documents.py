"""The commands and the Python in README and docs work as they are written."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tailrace.cli.parser import build_parser

ROOT = Path(__file__).parents[3]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")), *sorted((ROOT / "examples").rglob("*.md"))]


def code_blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(), re.S | re.M)


def commands(page: Path) -> list[str]:
    """Return the `tailrace …` commands of a page's code blocks, without what is said beside them."""
    found = []
    for block in code_blocks(page, ""):
        lines = block.replace("\\\n", " ").splitlines()
        typed = [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]
        for line in typed or lines:  # without a prompt a block has no output in it
            for part in line.split(" | "):
                if re.match(r"tailrace [a-z]", part):
                    command = re.split(r"\s{2,}(?!-)|\s+# |\s+[>&]", part)[0]
                    found.append(command)
    return found


@pytest.mark.parametrize("page", [page for page in PAGES if commands(page)], ids=lambda page: page.name)
def test_every_command_of_a_page_is_understood(page: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wrong = []
    for command in commands(page):
        try:
            build_parser().parse_args(shlex.split(command)[1:])
        except SystemExit as end:
            if end.code:
                wrong.append((command, capsys.readouterr().err.splitlines()[-1]))
    assert wrong == []


def test_the_python_of_the_readme_runs(tmp_path: Path) -> None:
    (code,) = code_blocks(ROOT / "README.md", "python")
    assert "/tmp/demo" in code
    code = code.replace("/tmp/demo", str(tmp_path))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert "00000000000000000000.log" in done.stdout
