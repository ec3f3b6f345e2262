"""Commands on the pages for users are ones that the command line understands, also where they are not run."""

from __future__ import annotations

import re
import shlex

import pytest

from tailrace.cli.parsing.parser import build_parser
from tests.support.doc_page import Example, Page, all_pages

PAGES = all_pages()


def commands(example: Example) -> list[str]:
    """Return the `tailrace …` commands of an example."""
    if example.language not in ("sh", "console"):
        return []
    found = []
    for typed, _ in example.commands:
        for line in typed.replace("\\\n", " ").splitlines():
            for part in re.split(r" \| | && |; |\$\(", line):
                if re.match(r"tailrace [a-z]", part.strip()):
                    found.append(re.split(r"\s+# |\s+2?[>&<]|\)", part.strip())[0])
    return found


def of(page: Page) -> list[str]:
    return [command for example in page.examples for command in commands(example)]


@pytest.mark.parametrize("page", [page for page in PAGES if of(page)], ids=lambda page: page.name)
def test_every_command_of_a_page_can_be_parsed(page: Page, capsys: pytest.CaptureFixture[str]) -> None:
    wrong = []
    for command in of(page):
        try:
            build_parser().parse_args(shlex.split(command)[1:])
        except SystemExit as end:
            if end.code:
                wrong.append((command, capsys.readouterr().err.splitlines()[-1]))
    assert wrong == []
