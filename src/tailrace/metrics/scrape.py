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
                name, sample = parse_sample(line)
                self._samples.setdefault(name, []).append(sample)

    def without(self, label: str) -> Scrape:
        """Return the sums of the samples that differ only in one label."""
        whole = Scrape("")
        for name, samples in self._samples.items():
            sums: dict[tuple[tuple[str, str], ...], float] = {}
            for one in samples:
                key = tuple(pair for pair in one.labels.items() if pair[0] != label)
                sums[key] = sums.get(key, 0.0) + one.value
            whole._samples[name] = [ScrapedSample(dict(key), value) for key, value in sums.items()]
        return whole

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


def parse_sample(line: str) -> tuple[str, ScrapedSample]:
    """Return the name and the sample of a line. Raise MalformedMetrics."""
    match = _SAMPLE.fullmatch(line)
    if match is None:
        raise MalformedMetrics(f"not a sample: {line[:80]!r}")
    labels = {found[1]: _unescaped(found[2]) for found in _LABEL.finditer(match[2] or "")}
    try:
        value = int(match[3]) if match[3].isdecimal() else float(match[3])
    except ValueError:
        raise MalformedMetrics(f"not a number: {match[3][:80]!r}") from None
    return match[1], ScrapedSample(labels, value)


def _unescaped(text: str) -> str:
    return _ESCAPED.sub(lambda found: "\n" if found[1] == "n" else found[1], text) if "\\" in text else text
