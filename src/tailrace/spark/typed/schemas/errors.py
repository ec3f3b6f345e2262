"""SchemaRefused: a schema that has no columns. Limits for all schemas."""

from __future__ import annotations

from typing import Final

MAX_DEPTH: Final = 32
MAX_FIELDS: Final = 10_000  # of a schema with all its nested fields


class SchemaRefused(ValueError):
    """A schema that cannot become columns. The message names the place in the schema."""


class FieldBudget:
    """Counts the fields of a schema: a small schema can describe a huge one, because types can be reused."""

    def __init__(self) -> None:
        self._left = MAX_FIELDS

    def spend(self, place: str, depth: int) -> None:
        self._left -= 1
        if self._left < 0:
            raise SchemaRefused(f"the schema has more than {MAX_FIELDS:,} fields (at {place})")
        if depth > MAX_DEPTH:
            raise SchemaRefused(f"the schema is nested deeper than {MAX_DEPTH} levels (at {place})")
