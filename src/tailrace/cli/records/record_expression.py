"""The expression of `consume --where`: a condition in Python's syntax on the parts of a record.

    value.price > 50 and value["city"] == "Oslo"
    "refund" in text or headers.trace == "17"
    key.startswith("customer-") and not matches(text, "^\\\\{")

The expression is compiled to functions and is never executed as Python. A part that is missing is None. A comparison of
values that cannot be ordered is false.
"""

from __future__ import annotations

import ast
import json
import operator
import re
from collections.abc import Callable
from typing import Any, Final

from tailrace.cli.errors import CommandError
from tailrace.model.ids import TopicPartition
from tailrace.records.record import Record

DEPTH_MAX: Final = 50
Decode = Callable[[bytes], Any]
_Evaluate = Callable[["_Names"], Any]

_COMPARISONS: Final[dict[type[ast.cmpop], Callable[[Any, Any], Any]]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
    ast.In: lambda one, all_of: one in all_of,
    ast.NotIn: lambda one, all_of: one not in all_of,
}
_ARITHMETIC: Final[dict[type[ast.operator], Callable[[Any, Any], Any]]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Mod: operator.mod,
}
_MATCHES: Final = "matches"
_METHODS: Final = ("startswith", "endswith", "lower", "upper", "strip")
_FUNCTIONS: Final[dict[str, Callable[..., Any]]] = {
    "len": len,
    "int": int,
    "float": float,
    "str": str,
    _MATCHES: lambda text, pattern: re.search(pattern, text) is not None,
}


class _Names:
    """The parts of one record, each decoded on first use."""

    def __init__(self, partition: TopicPartition, record: Record, decode: Decode | None) -> None:
        self._partition = partition
        self._record = record
        self._decode = decode
        self._known: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._known:
            self._known[name] = self._find(name)
        return self._known[name]

    def _find(self, name: str) -> Any:
        record = self._record
        if name == "key":
            return _text(record.key)
        if name == "text":
            return _text(record.value)
        if name == "value":
            return _value(record.value, self._decode)
        if name == "headers":
            return {header.key: _text(header.value) for header in record.headers}
        return {"offset": record.offset, "timestamp": record.timestamp, "partition": self._partition.partition}[name]


NAMES: Final = ("key", "value", "text", "headers", "offset", "timestamp", "partition")


def record_condition(text: str) -> Callable[[TopicPartition, Record, Decode | None], bool]:
    """Compile an expression. Raise CommandError if it is not one."""
    try:
        tree = ast.parse(text.strip(), mode="eval")
        evaluate = _compiled(tree.body, 0)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        reason = error.msg if isinstance(error, SyntaxError) else str(error)
        raise CommandError(f"--where {text!r}: {reason}; an example: value.price > 50 and key == 'a'") from None

    def holds(partition: TopicPartition, record: Record, decode: Decode | None) -> bool:
        try:
            return bool(evaluate(_Names(partition, record, decode)))
        except (TypeError, ValueError, ArithmeticError, re.error):
            return False

    return holds


def _compiled(node: ast.expr, depth: int) -> _Evaluate:
    """Return the function of a node. Raise ValueError for anything that is not part of the language."""
    if depth > DEPTH_MAX:
        raise ValueError(f"it is nested deeper than {DEPTH_MAX} levels")
    deeper = depth + 1
    match node:
        case ast.Constant(value=value) if value is None or isinstance(value, str | int | float | bool):
            return lambda names: value
        case ast.Name(id=name):
            if name not in NAMES:
                raise ValueError(f"{name!r} is not a part of a record; known are {', '.join(NAMES)}")
            return lambda names: names[name]
        case ast.BoolOp(op=op, values=values):
            parts = [_compiled(one, deeper) for one in values]
            decide = all if isinstance(op, ast.And) else any
            return lambda names: decide(_safely(part, names) for part in parts)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            inner = _compiled(operand, deeper)
            return lambda names: not _safely(inner, names)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            inner = _compiled(operand, deeper)
            return lambda names: -inner(names)
        case ast.Compare(left=left, ops=ops, comparators=others):
            return _comparison([_compiled(one, deeper) for one in (left, *others)], ops)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _ARITHMETIC:
            return _arithmetic(_ARITHMETIC[type(op)], _compiled(left, deeper), _compiled(right, deeper))
        case ast.Attribute(value=value, attr=name):
            inner = _compiled(value, deeper)
            return lambda names: _member(inner(names), name)
        case ast.Subscript(value=value, slice=index):
            inner, place = _compiled(value, deeper), _compiled(index, deeper)
            return lambda names: _member(inner(names), place(names))
        case ast.List(elts=elements) | ast.Tuple(elts=elements):
            items = [_compiled(one, deeper) for one in elements]
            return lambda names: [item(names) for item in items]
        case ast.Call(func=called, args=arguments, keywords=[]):
            _check_patterns(called, arguments)
            return _call(called, [_compiled(one, deeper) for one in arguments], deeper)
    raise ValueError(f"{ast.unparse(node)!r} is not supported in --where")


def _check_patterns(called: ast.expr, arguments: list[ast.expr]) -> None:
    """Raise ValueError if the pattern of `matches` is a constant and not a regular expression."""
    match called, arguments:
        case ast.Name(id=name), [_, ast.Constant(value=str(pattern))] if name == _MATCHES:
            try:
                re.compile(pattern)
            except re.error as error:
                raise ValueError(f"{pattern!r} is not a valid regular expression: {error}") from None


def _safely(part: _Evaluate, names: _Names) -> bool:
    """Return False for a part that compares values which cannot be compared, so that the other parts still count."""
    try:
        return bool(part(names))
    except (TypeError, ValueError, ArithmeticError):
        return False


def _comparison(parts: list[_Evaluate], ops: list[ast.cmpop]) -> _Evaluate:
    compares = [_COMPARISONS[type(op)] for op in ops]

    def compare(names: _Names) -> bool:
        values = [part(names) for part in parts]
        return all(one(left, right) for one, left, right in zip(compares, values, values[1:], strict=False))

    return compare


def _arithmetic(operate: Callable[[Any, Any], Any], left: _Evaluate, right: _Evaluate) -> _Evaluate:
    def calculate(names: _Names) -> Any:
        numbers = left(names), right(names)
        if not all(isinstance(one, int | float) for one in numbers):
            raise TypeError("arithmetic needs numbers")
        return operate(*numbers)

    return calculate


def _call(called: ast.expr, arguments: list[_Evaluate], depth: int) -> _Evaluate:
    match called:
        case ast.Name(id=name) if name in _FUNCTIONS:
            function = _FUNCTIONS[name]
            return lambda names: function(*[one(names) for one in arguments])
        case ast.Attribute(value=value, attr=name) if name in _METHODS:
            inner = _compiled(value, depth)
            method = getattr(str, name)
            return lambda names: method(inner(names), *[one(names) for one in arguments])
    known = ", ".join([*_FUNCTIONS, *(f"text.{name}" for name in _METHODS)])
    raise ValueError(f"{ast.unparse(called)!r} is not a function; known are {known}")


def _member(container: Any, name: Any) -> Any:
    if isinstance(container, dict):
        return container.get(name)
    if isinstance(container, list | str) and isinstance(name, int):
        return container[name] if -len(container) <= name < len(container) else None
    return None


def _text(data: bytes | None) -> str | None:
    return None if data is None else data.decode("utf-8", "replace")


def _value(data: bytes | None, decode: Decode | None) -> Any:
    if data is None:
        return None
    if decode is not None:
        return decode(data)
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return _text(data)
