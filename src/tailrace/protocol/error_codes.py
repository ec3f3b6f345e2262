"""error_counter: a function that counts all error codes of a response, including NONE.

The function is generated, like readers and writers, because every response goes through it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, Final

from tailrace.protocol.codegen.schema import StructSchema

ERROR_CODE: Final = "error_code"


@cache
def error_counter(response_class: Any) -> Callable[[Any, dict[int, int]], None]:
    """Return a function that adds to `codes`, a dict with the default 0."""
    lines = ["def count(r, codes):", *_lines(response_class.SCHEMA, "r", 1)]
    if len(lines) == 1:
        lines.append("    codes[0] += 1")  # a response without error codes counts as success
    names: dict[str, Any] = {}
    exec(compile("\n".join(lines), f"<{response_class.SCHEMA.name} error codes>", "exec"), names)
    made: Callable[[Any, dict[int, int]], None] = names["count"]
    return made


def _lines(struct: StructSchema, name: str, depth: int) -> Iterator[str]:
    indent = "    " * depth
    for field in struct.fields:
        if field.attribute == ERROR_CODE:
            yield f"{indent}codes[{name}.{ERROR_CODE}] += 1"
        elif field.struct is not None and field.is_array:
            inside = list(_lines(field.struct, f"{name}{depth}", depth + 1))
            if inside:
                yield f"{indent}for {name}{depth} in {name}.{field.attribute} or ():"
                yield from inside
