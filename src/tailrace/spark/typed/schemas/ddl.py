"""Converts column definitions of SQL to Arrow fields: `id BIGINT, name STRING, tags ARRAY<STRING>`.

The types are Spark's. A struct is STRUCT<sku: STRING, price: DECIMAL(10, 2)>.
"""

from __future__ import annotations

import re
from typing import Any, Final

import pyarrow as pa

from tailrace.spark.typed.schemas.errors import FieldBudget, SchemaRefused

_TYPES: Final = {
    "boolean": pa.bool_(),
    "tinyint": pa.int8(),
    "byte": pa.int8(),
    "smallint": pa.int16(),
    "short": pa.int16(),
    "int": pa.int32(),
    "integer": pa.int32(),
    "bigint": pa.int64(),
    "long": pa.int64(),
    "float": pa.float32(),
    "real": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "timestamp_ntz": pa.timestamp("us"),
}
_TOKEN: Final = re.compile(r"\s*(?:(`(?:[^`]|``)+`)|([A-Za-z0-9_]+)|([<>(),:]))")
_MAX_TEXT: Final = 1_000_000


def ddl_fields(text: str) -> Any:
    """Return the pyarrow.Schema for column definitions. Raise SchemaRefused with the place of a mistake."""
    if len(text) > _MAX_TEXT:
        raise SchemaRefused(f"the schema has {len(text):,} characters; at most {_MAX_TEXT:,} are read")
    reader = _Reader(_tokens(text))
    fields = reader.fields("", 0)
    if not fields:
        raise SchemaRefused("the schema has no columns")
    return pa.schema(fields)


def _tokens(text: str) -> list[str]:
    found, position, text = [], 0, text.strip()
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise SchemaRefused(f"the schema cannot be read at {text[position : position + 20]!r}")
        found.append(match[0].strip())
        position = match.end()
    return found


class _Reader:
    def __init__(self, tokens: list[str]) -> None:
        self._tokens = tokens
        self._at = 0
        self._budget = FieldBudget()

    def _next(self) -> str:
        token = self._tokens[self._at] if self._at < len(self._tokens) else ""
        self._at += 1
        return token

    def _skip(self, token: str) -> bool:
        if self._at < len(self._tokens) and self._tokens[self._at].lower() == token:
            self._at += 1
            return True
        return False

    def _expect(self, token: str) -> None:
        if not self._skip(token):
            found = self._tokens[self._at] if self._at < len(self._tokens) else "the end"
            raise SchemaRefused(f"the schema has {found!r} where {token!r} is expected")

    def fields(self, end: str, depth: int) -> list[Any]:
        """Read NAME TYPE, NAME TYPE … up to the token `end`."""
        found: list[Any] = []
        while self._at < len(self._tokens) or end:
            if end and self._skip(end):
                break
            if found:
                self._expect(",")
            name = self._next()
            if not name or name in "<>(),:":
                raise SchemaRefused(f"the schema has {name or 'its end'!r} where the name of a column is expected")
            self._skip(":")
            self._budget.spend(name, depth)
            name = name[1:-1].replace("``", "`") if name.startswith("`") else name
            kind = self._type(name, depth)
            is_required = self._skip("not")
            if is_required:
                self._expect("null")
            found.append(pa.field(name, kind))
        return found

    def _type(self, name: str, depth: int) -> Any:
        self._budget.spend(name, depth)
        word = self._next().lower()
        if word == "struct":
            self._expect("<")
            return pa.struct(self.fields(">", depth + 1))
        if word == "array":
            self._expect("<")
            kind = self._type(name, depth + 1)
            self._expect(">")
            return pa.list_(kind)
        if word in ("decimal", "dec", "numeric"):
            return self._decimal(name)
        if word not in _TYPES:
            known = ", ".join([*_TYPES, "decimal(p,s)", "array<…>", "struct<…>"])
            raise SchemaRefused(f"column {name} has the type {word or 'its end'!r}; the known types are {known}")
        return _TYPES[word]

    def _decimal(self, name: str) -> Any:
        precision, scale = 10, 0
        if self._skip("("):
            digits = [self._next()]
            if self._skip(","):
                digits.append(self._next())
            self._expect(")")
            if not all(one.isascii() and one.isdigit() and len(one) < 3 for one in digits):
                raise SchemaRefused(f"column {name} has decimal({','.join(digits)}); write decimal(10,2)")
            precision, scale = int(digits[0]), int(digits[1]) if len(digits) > 1 else 0
        if not 1 <= precision <= 38 or scale > precision:
            raise SchemaRefused(f"column {name} has decimal({precision},{scale}); the precision is 1 to 38")
        return pa.decimal128(precision, scale)
