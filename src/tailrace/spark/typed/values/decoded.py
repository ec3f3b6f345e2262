"""ValueDecoder and Decoded: values of one format as an Arrow array, with the reason for each that cannot be decoded."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

import pyarrow as pa

MAX_REASON: Final = 300  # characters


@dataclass(slots=True)
class Decoded:
    array: Any  # a pyarrow.Array of the decoder's type; null for a broken value
    errors: dict[int, str] = field(default_factory=dict)  # row → reason


class ValueDecoder(Protocol):
    """A decoder is pickled and sent to the workers."""

    @property
    def type(self) -> Any:
        """The pyarrow.DataType of decoded values."""

    def decode(self, values: Any) -> Decoded:
        """Decode a pyarrow.BinaryArray without nulls. Broken values never raise an error."""


def reason(error: BaseException) -> str:
    """Return the text of an error on one line, of limited length."""
    text = " ".join(str(error).split()) or type(error).__name__
    return text if len(text) <= MAX_REASON else f"{text[:MAX_REASON]}…"


def build_array(items: Sequence[Any], build: Callable[[Sequence[Any]], Any], errors: dict[int, str]) -> list[Any]:
    """Build arrays of all items together. If that fails, halve the items until each broken one is alone in `errors`.

    Items are (row, value), and `build` gets the values. The result has no places for broken items.
    """
    if not items:
        return []
    try:
        return [build([value for _, value in items])]
    except (pa.ArrowException, ValueError, TypeError, OverflowError) as error:
        if len(items) == 1:
            errors[items[0][0]] = reason(error)
            return []
    middle = len(items) // 2
    return [*build_array(items[:middle], build, errors), *build_array(items[middle:], build, errors)]


def spread(found: Sequence[Any], rows: int, errors: Mapping[int, str], kind: Any) -> Any:
    """Return the values at their rows, with null at the rows of broken values."""
    if len(found) == 1 and len(found[0]) == rows:
        return found[0]
    if not found:
        return pa.nulls(rows, kind)
    places, next_ = [], 0
    for row in range(rows):
        places.append(None if row in errors else next_)
        next_ += row not in errors
    return pa.concat_arrays(found).take(pa.array(places, pa.int32()))
