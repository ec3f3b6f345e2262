"""Metric families as text: Prometheus' exposition format 0.0.4, or OpenMetrics 1.0 for scrapers that ask for it.

The two formats differ in how counters and infos are declared and in the end mark. The text is made in small pieces, so
that the sender can do other work between two of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from tailrace.metrics.families import Family, Kind, Labels

PROMETHEUS: Final = "text/plain; version=0.0.4; charset=utf-8"
OPENMETRICS: Final = "application/openmetrics-text; version=1.0.0; charset=utf-8"
PIECE_SAMPLES_MAX: Final = 250
_SUFFIXES: Final = {Kind.COUNTER: "_total", Kind.INFO: "_info"}
_ESCAPES: Final = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n"})


def content_type(accept: str) -> str:
    """Return the content type that a scraper understands. Prometheus names OpenMetrics in its Accept header."""
    return OPENMETRICS if "application/openmetrics-text" in accept else PROMETHEUS


def pieces(families: Iterable[Family], kind: str) -> Iterator[str]:
    is_openmetrics = kind == OPENMETRICS
    lines: list[str] = []
    for family in families:
        suffix = _SUFFIXES.get(family.kind, "")
        declared, shown = family.name, family.kind.value
        if not is_openmetrics:
            declared += suffix
            shown = "gauge" if family.kind is Kind.INFO else shown
        lines.append(f"# HELP {declared} {_escaped(family.help)}")
        lines.append(f"# TYPE {declared} {shown}")
        name = family.name + suffix
        for labels, value, ending in family.samples:
            lines.append(f"{name}{ending}{_labels(labels) if labels else ''} {value!r}")
            if len(lines) >= PIECE_SAMPLES_MAX:
                yield "\n".join(lines) + "\n"
                lines.clear()
        if lines:
            yield "\n".join(lines) + "\n"
            lines.clear()
    if is_openmetrics:
        yield "# EOF\n"


def _labels(labels: Labels) -> str:
    return "{" + ",".join([f'{name}="{_escaped(text)}"' for name, text in labels.items()]) + "}"


def _escaped(text: str) -> str:
    return text if text.isalnum() else text.translate(_ESCAPES)
