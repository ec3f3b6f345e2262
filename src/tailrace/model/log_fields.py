"""fields: what a log line is about, beside its words.

    _log.info("topic created", extra=fields(topic="orders", partitions=3))

A line of text shows them behind the message; a line of JSON has them as members.
"""

from __future__ import annotations

from typing import Any, Final

FIELDS: Final = "fields"


def fields(**values: object) -> dict[str, Any]:
    """For `extra`; what is None is left out."""
    return {FIELDS: {name: value for name, value in values.items() if value is not None}}
