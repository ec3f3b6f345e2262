"""Scrape: the text of /metrics, parsed. Samples are found by name and labels."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

_SAMPLE: Final = re.compile(r"([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)(?: \S+)?")
_LABEL: Final = re.compile(r'([a-zA-Z_]\w*)="((?:[^"\\]|\\.)*)",?')
_ESCAPED: Final = re.compile(r"\\(.)")


class MalformedMetrics(ValueError):
    """The text is not in Prometheus' format."""


class ScrapedSample(NamedTuple):
    labels: Mapping[str, str]
    value: float


class Scrape:
    def __init__(self, text: str) -> None:
        self._samples: dict[str, list[ScrapedSample]] = {}
        for line in text.split("\n"):
            if line and not line.startswith("#"):
                match = _SAMPLE.fullmatch(line)
                if match is None:
                    raise MalformedMetrics(f"not a sample: {line[:80]!r}")
                labels = {found[1]: _unescaped(found[2]) for found in _LABEL.finditer(match[2] or "")}
                self._samples.setdefault(match[1], []).append(ScrapedSample(labels, float(match[3])))

    def samples(self, name: str, **labels: str) -> Iterator[ScrapedSample]:
        """Yield the samples that have these labels. They may have other labels too."""
        for sample in self._samples.get(name, ()):
            if all(sample.labels.get(key) == text for key, text in labels.items()):
                yield sample

    def value(self, name: str, default: float = 0.0) -> float:
        """Return the value of the sample without labels."""
        return next((sample.value for sample in self._samples.get(name, ()) if not sample.labels), default)

    def sum(self, name: str, **labels: str) -> float:
        return sum(sample.value for sample in self.samples(name, **labels))

    def by(self, name: str, label: str, **labels: str) -> dict[str, float]:
        """Return the sums of the samples by the value of one label."""
        sums: dict[str, float] = {}
        for sample in self.samples(name, **labels):
            if label in sample.labels:
                key = sample.labels[label]
                sums[key] = sums.get(key, 0.0) + sample.value
        return sums


def _unescaped(text: str) -> str:
    return _ESCAPED.sub(lambda found: "\n" if found[1] == "n" else found[1], text) if "\\" in text else text
