"""Chooses the segments that form one log.

Segments of a partition may overlap. After an election the new leader copies from an offset that an older segment may
have, too, and a repeated copy has an id of its own. After an unclean election old segments can have records that are no
longer part of the log. The leader epochs of the newest segment decide: records of an epoch count only up to the offset
at which the next epoch of that lineage starts.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from tailrace.model.ids import LeaderEpoch, Offset

Epochs = Sequence[tuple[LeaderEpoch, Offset]]


@dataclass(frozen=True, slots=True)
class Span:
    """The offsets of one segment, and its leader epochs with their first offsets in it."""

    key: Hashable
    start: Offset
    end: Offset  # exclusive
    epochs: Epochs


@dataclass(frozen=True, slots=True)
class Link:
    """A chosen segment, and the end of the offsets that the view uses of it."""

    key: Hashable
    start: Offset
    end: Offset
    is_cut: bool  # the segment has records from `end` on


def newest(spans: Iterable[Span]) -> Span | None:
    """Return the segment whose leader epochs are the lineage: of the latest epoch the one that ends last."""
    return max(spans, key=lambda span: (span.epochs[-1][0] if span.epochs else -1, span.end), default=None)


def chain(spans: Iterable[Span], lineage: Epochs) -> list[Link]:
    """Return the segments of the log in order. No offset is used from two of them."""
    valid: list[tuple[Offset, Offset, Span]] = []
    for span in spans:
        start, end = _within(span, lineage)
        if start < end:
            valid.append((span.start if start == span.start else start, end, span))
    valid.sort(key=lambda one: (one[0], -one[1]))
    chosen: list[tuple[Offset, Offset, Span]] = []
    for start, end, span in valid:
        if chosen and end <= chosen[-1][1]:
            continue  # an earlier segment has all of these records
        if chosen and span.start <= chosen[-1][2].start:
            start = chosen[-1][1]  # a view has one segment for a base offset
            continue
        chosen.append((start, end, span))
    ends = [min(end, following[0]) for (_, end, _), following in pairwise([*chosen, (2**63 - 1, 0, None)])]
    return [
        Link(span.key, span.start, end, is_cut=end < span.end) for (_, _, span), end in zip(chosen, ends, strict=True)
    ]


def _within(span: Span, lineage: Epochs) -> tuple[Offset, Offset]:
    """Return the offsets of a segment that are part of the lineage: one range, empty if there are none."""
    if not lineage or not span.epochs:
        return span.start, span.end
    starts = dict(lineage)
    ends = {epoch: following for (epoch, _), (_, following) in pairwise([*lineage, (-1, 2**63 - 1)])}
    oldest = lineage[0][0]
    found: tuple[Offset, Offset] | None = None
    for (epoch, first), (_, following) in pairwise([*span.epochs, (-1, span.end)]):
        if epoch not in starts or (epoch != oldest and first < starts[epoch]) or first >= ends[epoch]:
            if found is not None:
                break
            continue
        end = min(following, ends[epoch])
        found = (first if found is None else found[0]), end
        if end < following:
            break
    return found or (span.start, span.start)
