"""The examples of a documentation page, and what a reader needs for them.

A page is Markdown. Its fenced blocks are examples; the word after the fence says what becomes of one:

    ```python             run by a fresh Python
    ```sh                 run by bash
    ```console            lines after `$ ` are run by bash; the other lines are output, which has to appear
    ```python test_x.py   a file of that name; it is written, not run. A name after `text` or `hex` is shown only
    ```text, yaml, …      shown only

All examples of a page share one new directory and run in the order of the page. HTML comments direct them:

    <!-- setup            shell commands that the reader does not see: the state that a page expects
    tailrace serve …
    -->
    <!-- background -->   the last command of the next block keeps running; the next step waits for its output
    <!-- exits: 1 -->     the exit status of the next block
    <!-- needs: spark --> the next block needs Spark; before the title: every block of the page. Also kafka, slow
    <!-- not run: why --> the next block is shown only, for a reason
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
NEEDS = frozenset({"spark", "kafka", "slow"})
RUN = frozenset({"python", "sh", "console"})
SHOWN = frozenset({"text", "properties", "ini", "yaml", "json", "java", "sql", "promql", "hex", "dockerfile"})

_PART = re.compile(
    r"^ *<!-- setup\n(?P<setup>.*?)^ *-->$"
    r"|^ *<!-- (?P<directive>background|exits: \d+|needs: [\w, ]+|not run: [^>]+?) -->$"
    r"|^(?P<indent> *)```(?P<info>[^\n`]*)\n(?P<text>.*?)^(?P=indent)```$"
    r"|^(?P<title># )",
    re.MULTILINE | re.DOTALL,
)
_IDENTIFIER = re.compile(r"(?<![\w-])[\w-]{22}(?![\w-])")
_NUMBER = re.compile(r"\d[\d,.]*")


class PageError(Exception):
    """A page that does not follow the rules above."""


@dataclass(frozen=True, slots=True)
class Example:
    """One fenced block, or one hidden setup."""

    place: str
    language: str
    text: str
    file_name: str = ""
    needs: frozenset[str] = frozenset()
    is_background: bool = False
    exit_status: int = 0
    why_not_run: str = ""

    @property
    def is_step(self) -> bool:
        """Return True if the example changes something: it runs, or it is a file."""
        return not self.why_not_run and (self.language in RUN or bool(self.file_name))

    @property
    def commands(self) -> list[tuple[str, list[str]]]:
        """Return the commands of a shell example, each with the output that the page shows."""
        if self.language != "console":
            return [(self.text, [])]
        commands: list[tuple[str, list[str]]] = []
        is_continued = False
        for line in self.text.splitlines():
            if is_continued:
                command, shown = commands[-1]
                commands[-1] = (f"{command}\n{line}", shown)
            elif line.startswith("$ "):
                commands.append((line[2:], []))
            elif commands:
                commands[-1][1].append(line)
            else:
                raise PageError(f"{self.place}: output before the first command")
            is_continued = (is_continued or line.startswith("$ ")) and line.endswith("\\")
        return commands


@dataclass(slots=True)
class _Directives:
    needs: frozenset[str] = frozenset()
    is_background: bool = False
    exit_status: int = 0
    why_not_run: str = ""

    def take(self, text: str, place: str) -> None:
        name, _, value = text.partition(": ")
        if name == "background":
            self.is_background = True
        elif name == "exits":
            self.exit_status = int(value)
        elif name == "not run":
            self.why_not_run = value
        else:
            self.needs = frozenset(re.split(r", *", value))
            if self.needs - NEEDS:
                raise PageError(f"{place}: needs {', '.join(sorted(self.needs - NEEDS))}: unknown")


@dataclass(slots=True)
class Page:
    path: Path
    examples: list[Example] = field(default_factory=list)

    @property
    def name(self) -> str:
        return self.path.relative_to(ROOT).as_posix()

    @property
    def needs(self) -> frozenset[str]:
        return frozenset().union(*(example.needs for example in self.examples if example.is_step))

    @property
    def has_plain_steps(self) -> bool:
        """Return True if something of the page runs where only Tailrace and its test clients are installed."""
        return any(example.language in RUN and example.is_step and not example.needs for example in self.examples)


def read_page(path: Path) -> Page:
    """Read the examples of a page, or raise PageError."""
    page = Page(path)
    text = path.read_text()
    pending = _Directives()
    page_needs: frozenset[str] = frozenset()
    for match in _PART.finditer(text):
        place = f"{page.name}:{text.count(chr(10), 0, match.start()) + 1}"
        if match["title"]:
            page_needs |= pending.needs
            pending = _Directives()
        elif match["directive"]:
            pending.take(match["directive"], place)
        elif match["setup"]:
            page.examples.append(Example(place, "sh", match["setup"], needs=page_needs | pending.needs))
            pending = _Directives()
        else:
            page.examples.append(_example(match, place, page_needs, pending))
            pending = _Directives()
    return page


def _example(match: re.Match[str], place: str, page_needs: frozenset[str], directives: _Directives) -> Example:
    language, _, file_name = match["info"].strip().partition(" ")
    if language in ("text", "hex"):
        file_name = ""
    if language not in RUN | SHOWN:
        raise PageError(f"{place}: a block needs a language: one of {', '.join(sorted(RUN | SHOWN))}")
    indent = len(match["indent"])
    return Example(
        place,
        language,
        "".join(f"{line[indent:]}\n" for line in match["text"].splitlines()),
        file_name,
        page_needs | directives.needs,
        directives.is_background,
        directives.exit_status,
        directives.why_not_run,
    )


def all_pages() -> list[Page]:
    """Read every page for users: the README, docs/ and the examples' pages."""
    paths = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")), *sorted((ROOT / "examples").rglob("*.md"))]
    return [read_page(path) for path in paths]


def missing_lines(shown: list[str], output: str) -> list[str]:
    """Return the shown lines that the output does not have, in this order.

    Numbers and identifiers may differ, and so may blanks. A line `…` stands for any lines, `…` in a line for any text.
    """
    actual = [_normal(line) for line in output.splitlines()]
    at = 0
    missing = []
    for line in shown:
        wanted = _normal(line)
        if wanted in ("", "…"):
            continue
        pattern = re.compile(".*".join(map(re.escape, wanted.split("…"))))
        found = next((i for i in range(at, len(actual)) if pattern.fullmatch(actual[i])), None)
        if found is None:
            missing.append(line)
        else:
            at = found + 1
    return missing


def _normal(line: str) -> str:
    line = _NUMBER.sub("0", _IDENTIFIER.sub("ID", line))
    line = re.sub(r"\b0 ([KMGT]?B|[mµ]?s)\b", "0 unit", line)
    return " ".join(re.sub(r"[─-]{3,}", "---", line).split())
