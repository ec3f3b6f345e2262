"""Statistics of a Parquet file from its footer, in the JSON form of Delta: bounds and null counts of simple columns.

Bounds of timestamps have milliseconds, rounded outwards, as Delta requires. Text bounds may be cut, so only short ones
are given. Readers skip files with them.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Any

_TEXT = 32  # maximum characters of a bound


def statistics_of(footer: Any) -> dict[str, Any]:
    lowest: dict[str, Any] = {}
    highest: dict[str, Any] = {}
    nulls: dict[str, int] = {}
    for number in range(footer.num_columns):
        path = footer.schema.column(number).path
        if "." in path:
            continue
        found = [footer.row_group(group).column(number).statistics for group in range(footer.num_row_groups)]
        if any(one is None or not one.has_null_count for one in found):
            continue
        nulls[path] = sum(one.null_count for one in found)
        bounds = [one for one in found if one.num_values]
        if bounds and all(one.has_min_max for one in bounds):
            low, high = min(one.min for one in bounds), max(one.max for one in bounds)
            low, high = _bound(low), _bound(high, is_upper=True)
            if low is not None and high is not None:
                lowest[path], highest[path] = low, high
    return {"numRecords": footer.num_rows, "minValues": lowest, "maxValues": highest, "nullCount": nulls}


def _bound(value: Any, *, is_upper: bool = False) -> Any:
    """Return the JSON form of a bound; None if there is none."""
    if isinstance(value, bool | bytes):
        return None
    if isinstance(value, datetime):
        if is_upper and value.microsecond % 1000:
            value += timedelta(milliseconds=1)
        return value.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, str):
        return value if len(value) <= _TEXT else None
    if isinstance(value, float):
        return value if value == value and abs(value) != float("inf") else None
    return value if isinstance(value, int) else None
