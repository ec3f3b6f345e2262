"""Source: lines of generated Python, and the names they use."""

from __future__ import annotations

from struct import Struct
from typing import Any

from tailrace.protocol.codegen.schema import Field, StructSchema
from tailrace.protocol.primitives import FORMATS

NUMBERS = frozenset(FORMATS) - {"uuid"}


class Source:
    """The functions generated for one version of one message."""

    def __init__(self, message_class: Any, version: int) -> None:
        self.message_class = message_class
        self.schema = message_class.SCHEMA
        self.version = version
        self.is_flexible = version in self.schema.flexible
        self.names: dict[str, Any] = {"WHAT": f"{self.schema.name} v{version}"}
        self.functions: list[str] = []
        self._lines: list[str] = []
        self._indent = 0
        self._unique = 0

    def text(self) -> str:
        """Return the generated code. Its entry point is the function `main`."""
        raise NotImplementedError

    def line(self, text: str) -> None:
        self._lines.append("    " * self._indent + text)

    def indent(self, by: int = 1) -> None:
        self._indent += by

    def unique(self, stem: str) -> str:
        self._unique += 1
        return f"{stem}{self._unique}"

    def constant(self, name: str, value: Any) -> str:
        """Add a constant to the namespace of the generated code and return its name."""
        self.names.setdefault(name, value)
        return name

    def layout(self, codes: str, method: str) -> tuple[str, int]:
        """Return the name of a bound struct method for these format codes, and their size."""
        layout = Struct(f">{codes}")
        return self.constant(f"{method}_{codes.replace('?', 'o')}", getattr(layout, method)), layout.size

    def class_name(self, struct: StructSchema) -> str:
        """Return the name of a struct's class in the generated code."""
        if struct is self.schema:
            return self.constant("C", self.message_class)
        return self.constant(f"C_{struct.name}", self.message_class.STRUCTS[struct])

    def default_name(self, struct: StructSchema) -> str:
        return self.constant(f"D_{struct.name}", self.message_class.STRUCTS[struct].DEFAULT)

    def is_compact(self, field: Field) -> bool:
        """Return True if the field's length is a varint in this version."""
        return self.is_flexible if field.flexible is None else self.version in field.flexible

    def take_lines(self) -> tuple[list[str], int]:
        """Set aside the lines of the current function, so that another function can be generated first."""
        aside = self._lines, self._indent
        self._lines, self._indent = [], 0
        return aside

    def finish_function(self, aside: tuple[list[str], int]) -> None:
        self.functions.append("\n".join(self._lines))
        self._lines, self._indent = aside
