"""merged: the pages of several processes as one page, with a label that names the process of each sample.

Pages are in OpenMetrics' format, as `exposition.py` writes them. Samples are parsed while they are written again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from tailrace.metrics.families import Family, Kind, Sample
from tailrace.metrics.scrape import MalformedMetrics, parse_sample

_HELP, _TYPE = "# HELP ", "# TYPE "
_SUFFIXES = {Kind.COUNTER: "_total", Kind.INFO: "_info"}


@dataclass(slots=True)
class _Family:
    kind: Kind = Kind.GAUGE
    help: str = ""
    lines: dict[str, list[str]] = field(default_factory=dict)  # by process


def merged(pages: Mapping[str, str], label: str) -> list[Family]:
    """Return the families of all pages. Each sample gets `label` with the key of its page."""
    families: dict[str, _Family] = {}
    for process, page in pages.items():
        _read(page, process, families)
    return [Family(name, one.kind, one.help, _samples(name, one, label)) for name, one in families.items()]


def _read(page: str, process: str, families: dict[str, _Family]) -> None:
    family: _Family | None = None
    for line in page.split("\n"):
        if line.startswith(_HELP):
            name, _, text = line.removeprefix(_HELP).partition(" ")
            family = families.setdefault(name, _Family())
            family.help = text.replace("\\n", "\n").replace("\\\\", "\\")
        elif line.startswith(_TYPE):
            name, _, kind = line.removeprefix(_TYPE).partition(" ")
            family = families.setdefault(name, _Family())
            family.kind = Kind(kind)
        elif line and not line.startswith("#"):
            if family is None:
                raise MalformedMetrics(f"a sample without a family: {line[:80]!r}")
            family.lines.setdefault(process, []).append(line)


def _samples(name: str, family: _Family, label: str) -> Iterator[Sample]:
    prefix = name + _SUFFIXES.get(family.kind, "")
    for process, lines in family.lines.items():
        for line in lines:
            found, sample = parse_sample(line)
            yield Sample({label: process, **sample.labels}, sample.value, found.removeprefix(prefix))
