# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# cython: initializedcheck=False, annotation_typing=False
"""Values as lines of JSON: finds the end of each value, so that a parser of lines cannot join or split values.

Plain Python that Cython compiles in place, with its C types in json_lines.pxd. The rules of `kernels.py` apply.

`join_lines` copies every value that is one balanced JSON object to a line of its own. Line feeds between tokens become
spaces. It checks what a parser could take across the end of a value: brackets, strings, control characters, text after
the object. It also checks UTF-8 and the depth. A parser of the lines still has to check everything else.
"""

from __future__ import annotations

from typing import Any, Final

COMPILED = not __file__.endswith(".py")

MAX_DEPTH: Final = 128
_MAX_DEPTH = MAX_DEPTH
# The fault of a value; 0: none.
FAULTS: Final = (
    "",
    "is empty",
    "is not a JSON object",
    "ends inside the JSON object",
    "has text after the JSON object",
    "has a control character in the JSON",
    "is not UTF-8",
    f"is nested deeper than {MAX_DEPTH} levels",
)
_EMPTY, _NO_OBJECT, _UNFINISHED, _TRAILING, _CONTROL, _NOT_UTF8, _DEEP = 1, 2, 3, 4, 5, 6, 7


def join_lines(data: Any, ends: Any, out: Any, faults: Any) -> int:
    """Copy the values as lines to `out`, and set the fault of each. Return the number of bytes in `out`.

    Value n is data[ends[n]:ends[n + 1]]. `out` needs room for all values and a line feed for each.
    """
    rows = len(faults)
    used = 0
    for row in range(rows):
        start, stop = ends[row], ends[row + 1]
        size = _copy_value(data, start, stop, out, used)
        if size < 0:
            faults[row] = -size
            continue
        faults[row] = 0
        out[used + size] = 10
        used += size + 1
    return used


def _is_space(char: int) -> bool:
    return char == 32 or char == 10 or char == 13 or char == 9


def _utf8_size(data: Any, position: int, stop: int) -> int:
    """Return the size of the valid UTF-8 sequence at a position; 0 if it is not valid."""
    first = data[position]
    if first < 0xC2 or first > 0xF4:
        return 0
    size = 2 if first < 0xE0 else 3 if first < 0xF0 else 4
    if position + size > stop:
        return 0
    second = data[position + 1]
    low, high = 0x80, 0xBF
    if first == 0xE0:
        low = 0xA0
    elif first == 0xED:
        high = 0x9F
    elif first == 0xF0:
        low = 0x90
    elif first == 0xF4:
        high = 0x8F
    if second < low or second > high:
        return 0
    for more in range(2, size):
        if data[position + more] < 0x80 or data[position + more] > 0xBF:
            return 0
    return size


def _copy_value(data: Any, start: int, stop: int, out: Any, used: int) -> int:
    """Copy one object. Return its size, or the negative number of its fault."""
    position = start
    while position < stop and _is_space(data[position]):
        position += 1
    if position == stop:
        return -_EMPTY
    if data[position] != 123:
        return -_NO_OBJECT
    begin, depth, in_string = used, 0, False
    while position < stop:
        char = data[position]
        size = 1
        if in_string:
            if char == 34:
                in_string = False
            elif char == 92:
                if position + 1 >= stop:
                    return -_UNFINISHED
                if data[position + 1] < 32 or data[position + 1] > 126:
                    return -_CONTROL
                size = 2
            elif char < 32:
                return -_CONTROL
            elif char > 127:
                size = _utf8_size(data, position, stop)
                if size == 0:
                    return -_NOT_UTF8
        elif char == 34:
            in_string = True
        elif char == 123 or char == 91:
            depth += 1
            if depth > _MAX_DEPTH:
                return -_DEEP
        elif char == 125 or char == 93:
            depth -= 1
        elif char == 10 or char == 13:
            char = 32
        elif (char < 32 and char != 9) or char > 126:
            return -_CONTROL
        out[used] = char
        for more in range(1, size):
            out[used + more] = data[position + more]
        used += size
        position += size
        if depth == 0:
            break
    if depth != 0:
        return -_UNFINISHED
    while position < stop:
        if not _is_space(data[position]):
            return -_TRAILING
        position += 1
    return used - begin
