"""bars: a table's costs as a picture, one bar for each contender and work, on a logarithmic scale. Plain SVG."""

from __future__ import annotations

import math
from collections.abc import Sequence
from xml.sax.saxutils import escape

from benchmarks.broker.comparison import KAFKA, KFAKE, OURS, Comparison

_COLOURS = {OURS: "#1b7f79", KAFKA: "#b8b8b8", KFAKE: "#e0c060"}
_LEFT, _WIDTH, _BAR, _GAP = 260, 420, 12, 14


def bars(title: str, rows: Sequence[Comparison]) -> str:
    """Return the picture, or an empty text if there is nothing to compare."""
    shown = [row for row in rows if row.ratio is not None]
    if not shown:
        return ""
    costs = [cost for row in shown for cost in row.costs.values() if cost > 0]
    low, high = math.floor(math.log10(min(costs))), math.ceil(math.log10(max(costs)))
    scale = _WIDTH / max(high - low, 1)
    lines, y = [], 54
    for row in shown:
        names = [name for name in _COLOURS if row.costs.get(name, 0) > 0]
        middle = y + len(names) * _BAR / 2 + 4
        lines.append(f'<text x="{_LEFT - 8}" y="{middle:.0f}" text-anchor="end">{escape(row.work)}</text>')
        for name in names:
            width = (math.log10(row.costs[name]) - low) * scale
            lines.append(f'<rect x="{_LEFT}" y="{y}" width="{width:.1f}" height="{_BAR - 2}" fill="{_COLOURS[name]}"/>')
            reported = escape(row.reported[name])
            lines.append(f'<text x="{_LEFT + width + 5:.1f}" y="{y + 9}" class="small">{reported}</text>')
            y += _BAR
        y += _GAP
    legend, x = [], _LEFT
    drawn = {name for row in shown for name in row.costs}
    for name, colour in ((name, colour) for name, colour in _COLOURS.items() if name in drawn):
        legend.append(f'<rect x="{x}" y="32" width="10" height="10" fill="{colour}"/>')
        legend.append(f'<text x="{x + 14}" y="41" class="small">{name}</text>')
        x += 110
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_LEFT + _WIDTH + 200}" height="{y + 4}" '
        'font-family="sans-serif" font-size="12">'
    )
    style = '<style>.small{font-size:10px}</style><rect width="100%" height="100%" fill="white"/>'
    name = f'<text x="12" y="20" font-size="14">{escape(title)}: less is better, logarithmic</text>'
    return "\n".join([head, style, name, *legend, *lines, "</svg>"]) + "\n"
