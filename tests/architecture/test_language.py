"""The English of modules and documents follows the rules of language.py."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.architecture.language import default_places, files, findings_of

TOLD = "told"  # a banned word; the texts below contain it only when they run
SHALL = "shall"
MANY = "many"
STANDS = "stands"
LOOKED = "looked"
BESIDE = "beside"
TEXT = "is not a " + "text"


def test_all_texts_of_the_repository_have_no_findings() -> None:
    found = [str(one) for path in files(default_places()) for one in findings_of(path)]
    assert found == []


@pytest.mark.parametrize(
    ("text", "rules"),
    [
        ('"""Return the floor segment."""\n', []),
        ('"""What a member has."""\n', ["docstring opens with a question word"]),
        (f'raise ValueError("the client is {TOLD} about it")\n', [f'"{TOLD}" (better: report, return, log, notify)']),
        (f"name = 1  # the caller {SHALL} wait\n", [f'"{SHALL}" (better: must, is to)']),
        (f"def test_a_member_is_{TOLD}() -> None: ...\n", [f'"{TOLD}" (better: report, return, log, notify)']),
        (f'"""A sentence {"with many words " * 14}."""\n', ["sentence of over 40 words"]),
        (f'"""A word in code, `{TOLD}`, is a name."""\n', []),
        (f'raise ValueError("a word in code, `{TOLD}`, is a name")\n', []),
        ("first = 1  # one remark of a field\nsecond = 2  # another remark\n", []),
        (
            f"first = 1  # wait for so {MANY} records\n",
            [f'"so {MANY}" (better: name the number, the size or the time)'],
        ),
        ("first = 1  # so many records that a batch is full\n", []),
        (f"# The limit {STANDS} in the table.\n", [f'"{STANDS}" (better: be in, be at)']),
        (f"# NEW {STANDS} for a new log.\n", []),
        (f"# The log is {LOOKED} at again.\n", [f'"{LOOKED} at" (better: check, read, examine)']),
        (f"{TOLD}_acls = 1\n", [f'"{TOLD}" in a name']),
        (f"def read({TOLD}: int) -> None: ...\n", [f'"{TOLD}" in a name']),
        ("def fetch(at_least: int) -> None: ...\n", ["a name that explains nothing (better: version_min, bytes_min)"]),
        ("def fetch(at_least_one: bool) -> None: ...\n", []),
        (
            f'"""The log is cut {BESIDE} the loop."""\n',
            [f'"{BESIDE} the loop" (better: on a worker thread, by a chore)'],
        ),
        (f'raise ValueError("the value {TEXT}")\n', [f'"{TEXT}" (better: must be a string)']),
        ("size=file.tell()\n", []),
        (
            'def size() -> int:\n    """The size of a log."""\n',
            ["function docstring without a verb (better: Return …)"],
        ),
        ('class Log:\n    @property\n    def size(self) -> int:\n        """The size of a log."""\n', []),
        ("def is_open() -> None: ...\n", ["a question as a name, but the result is None"]),
        ("def is_open() -> bool: ...\n", []),
        (
            'def find():\n    """Return it. KafkaError if it is unknown."""\n',
            ["error without a verb (better: Raise … if)"],
        ),
        ('def find():\n    """Return it. Raise KafkaError if it is unknown."""\n', []),
    ],
)
def test_findings_in_a_module(tmp_path: Path, text: str, rules: list[str]) -> None:
    module = tmp_path / "module.py"
    module.write_text(text)
    assert [one.rule for one in findings_of(module)] == rules


def test_code_blocks_of_a_page_are_not_checked(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"The client is {TOLD}.\n\n```\nthe client is {TOLD}\n```\n")
    assert [one.line for one in findings_of(page)] == [1]


@pytest.mark.parametrize(
    ("text", "count"),
    [("# Jobs\n\nWork over whole logs.\n", 1), ("# Jobs\n\nThis page is for people who verify logs.\n", 0)],
)
def test_the_first_paragraph_of_a_page_names_its_readers(tmp_path: Path, text: str, count: int) -> None:
    page = tmp_path / "docs" / "reference" / "jobs.md"
    page.parent.mkdir(parents=True)
    page.write_text(text)
    assert len(findings_of(page)) == count
