"""fields: the structured fields of a log line.

    _log.info("topic created", extra=fields(topic="orders", partitions=3))

A text line shows the fields after the message. A JSON line has them as members.
"""

from __future__ import annotations

from typing import Any, Final

FIELDS: Final = "fields"


def fields(**values: object) -> dict[str, Any]:
    """Return the fields for `extra`. Fields with the value None are left out."""
    return {FIELDS: {name: value for name, value in values.items() if value is not None}}
