"""Small charts as plain SVG: bar charts, and an area chart over time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from xml.sax.saxutils import escape

_COLOUR = "#1b7f79"
_LEFT, _WIDTH, _BAR, _HEIGHT = 180, 480, 16, 140


def bars(title: str, rows: Sequence[tuple[str, float, str]]) -> str:
    """Draw a bar chart. A row has a name, a length, and a text beside the bar."""
    longest = max((length for _, length, _ in rows), default=0) or 1
    lines, y = [], 34
    for name, length, text in rows:
        width = _WIDTH * length / longest
        lines.append(f'<text x="{_LEFT - 8}" y="{y + 11}" text-anchor="end">{escape(_short(name))}</text>')
        lines.append(f'<rect x="{_LEFT}" y="{y}" width="{width:.1f}" height="{_BAR - 3}" fill="{_COLOUR}"/>')
        lines.append(f'<text x="{_LEFT + width + 5:.1f}" y="{y + 11}" class="small">{escape(text)}</text>')
        y += _BAR
    return _picture(title, lines, y + 8)


def area(title: str, points: Sequence[tuple[float, float]], x_text: Callable[[float], str], y_text: str) -> str:
    """Draw a value over time. The caller must include points with the value zero."""
    if not points:
        return _picture(title, ['<text x="12" y="44">nothing to show</text>'], 60)
    low, high = points[0][0], points[-1][0]
    most = max(value for _, value in points) or 1
    scale = _WIDTH / (high - low) if high > low else 0
    base = 34 + _HEIGHT
    path = " ".join(f"{_LEFT + (x - low) * scale:.1f},{base - value / most * _HEIGHT:.1f}" for x, value in points)
    right = _LEFT + (high - low) * scale
    lines = [
        f'<polygon points="{_LEFT},{base} {path} {right:.1f},{base}" fill="{_COLOUR}" fill-opacity="0.35"/>',
        f'<polyline points="{path}" fill="none" stroke="{_COLOUR}"/>',
        f'<line x1="{_LEFT}" y1="{base}" x2="{_LEFT + _WIDTH}" y2="{base}" stroke="#888"/>',
        f'<text x="{_LEFT - 8}" y="44" text-anchor="end">{escape(y_text)}</text>',
        f'<text x="{_LEFT - 8}" y="{base}" text-anchor="end">0</text>',
        f'<text x="{_LEFT}" y="{base + 16}">{escape(x_text(low))}</text>',
        f'<text x="{_LEFT + _WIDTH}" y="{base + 16}" text-anchor="end">{escape(x_text(high))}</text>',
    ]
    return _picture(title, lines, base + 26)


def _short(name: str, most: int = 26) -> str:
    return name if len(name) <= most else f"{name[: most - 1]}…"


def _picture(title: str, lines: Sequence[str], height: int) -> str:
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_LEFT + _WIDTH + 160}" height="{height}" '
        'font-family="sans-serif" font-size="12">'
    )
    style = '<style>.small{font-size:10px}</style><rect width="100%" height="100%" fill="white"/>'
    name = f'<text x="12" y="20" font-size="14">{escape(title)}</text>'
    return "\n".join([head, style, name, *lines, "</svg>"]) + "\n"
