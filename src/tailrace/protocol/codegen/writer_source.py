"""WriterSource: the Python that writes one version of one message.

A generated function appends to a list of parts, several at a time. If it fails (a field that the version lacks, a
number out of range, a value of the wrong type), `diagnosis` finds the field afterwards.
"""

from __future__ import annotations

import struct
from typing import Any

from tailrace.protocol.codegen.diagnosis import unwritable
from tailrace.protocol.codegen.schema import ZERO_UUID, Field, StructSchema
from tailrace.protocol.codegen.source import NUMBERS, Source
from tailrace.protocol.errors import UnwritableMessage
from tailrace.protocol.primitives import (
    ARRAYS,
    ARRAYS_KEPT,
    BYTE,
    FORMATS,
    compact_string_length,
    uvarint,
    write_chunks,
    write_numbers,
    write_strings,
    write_tags,
    write_uuids,
)


class WriterSource(Source):
    def __init__(self, message_class: Any, version: int) -> None:
        super().__init__(message_class, version)
        self.names |= {
            "BYTE": BYTE, "ZERO_UUID": ZERO_UUID, "uvarint": uvarint, "string_length": compact_string_length,
            "write_numbers": write_numbers, "write_uuids": write_uuids, "write_strings": write_strings,
            "write_chunks": write_chunks, "write_tags": write_tags, "StructError": struct.error,
            "Unwritable": UnwritableMessage, "unwritable": unwritable, "VERSION": version,
        }  # fmt: skip
        self._run: list[tuple[str, str]] = []  # values and format codes of the next struct call
        self._parts: list[str] = []  # expressions that the next statement appends to the parts

    def text(self) -> str:
        self.line("def main(m0, parts):")
        self.indent()
        self.line("try:")
        self.indent()
        self._struct(self.schema, "m0")
        self._flush()
        self.indent(-1)
        self.line("except (Unwritable, StructError, TypeError, AttributeError, ValueError) as error:")
        self.line("    raise unwritable(m0, VERSION, error) from error")
        self.finish_function(([], 0))
        return "\n\n".join(self.functions)

    # ----------------------------------------------------------------------------------------------- gathering parts

    def _pack(self, value: str, code: str) -> None:
        self._run.append((value, code))

    def _end_run(self) -> None:
        if self._run:
            method, _ = self.layout("".join(code for _, code in self._run), "pack")
            self._parts.append(f"{method}({', '.join(value for value, _ in self._run)})")
            self._run = []

    def _part(self, expression: str) -> None:
        self._end_run()
        self._parts.append(expression)

    def _flush(self) -> None:
        self._end_run()
        if self._parts:
            comma = "," if len(self._parts) == 1 else ""
            self.line(f"parts += ({', '.join(self._parts)}{comma})")
            self._parts = []

    # --------------------------------------------------------------------------------------------------------- structs

    def _struct(self, struct: StructSchema, var: str) -> None:
        # A field that the version lacks must have its default, unless the schema calls it ignorable.
        refused = [
            self._set_condition(f, f"{var}.{f.attribute}") for f in struct.missing(self.version) if not f.ignorable
        ]
        if not self.is_flexible:
            refused.append(f"{var}.unknown_tags")
        if refused:
            self.line(f"if {' or '.join(refused)}: raise Unwritable")
        for field in struct.untagged(self.version):
            self._field(field, f"{var}.{field.attribute}", int(var[1:]), is_tagged=False)
        if not self.is_flexible:
            return
        tagged = struct.tagged(self.version)
        if tagged:
            function = self._tags_function(struct)
            conditions = [self._set_condition(field, f"{var}.{field.attribute}") for field in tagged]
            self._part(rf'({function}({var}) if {" or ".join(conditions)} or {var}.unknown_tags else b"\0")')
        else:
            self._part(rf'(write_tags((), {var}.unknown_tags) if {var}.unknown_tags else b"\0")')

    def _set_condition(self, field: Field, value: str) -> str:
        """Return an expression that is true if the value is not the field's default."""
        if field.default is None:
            return f"{value} is not None"
        if field.default is ...:
            if not field.is_array:
                name = self.default_name(_struct_of(field))
                return f"({value} is not {name} and {value} != {name})"
            return f"({value} is None or len({value}))" if field.nullable else f"len({value})"
        if field.element == "uuid":
            return f"{value} != ZERO_UUID"
        if field.element == "bool":
            return f"not {value}" if field.default else value
        return f"{value} != {field.default!r}"

    def _tags_function(self, struct: StructSchema) -> str:
        """Return the name of a new function (struct) → bytes that writes a struct's tagged fields that are not at their
        default."""
        name = self.unique("tags")
        aside, gathered = self.take_lines(), (self._run, self._parts)
        self._run, self._parts = [], []
        self.line(f"def {name}(m0):")
        self.indent()
        self.line("tags = []")
        for field in struct.tagged(self.version):
            value = f"m0.{field.attribute}"
            self.line(f"if {self._set_condition(field, value)}:")
            self.indent()
            self.line("parts = []")
            self._field(field, value, 0, is_tagged=True)
            self._flush()
            self.line(f'tags.append(({field.tag}, b"".join(parts)))')
            self.indent(-1)
        self.line("return write_tags(tags, m0.unknown_tags)")
        self.finish_function(aside)
        self._run, self._parts = gathered
        return name

    # ---------------------------------------------------------------------------------------------------------- fields

    def _field(self, field: Field, value: str, depth: int, *, is_tagged: bool) -> None:
        if field.is_array:
            self._array(field, value, depth)
        elif field.struct is not None:
            self._inner_struct(field, field.struct, value, depth, is_tagged=is_tagged)
        elif field.element == "uuid":
            self.line(f"if len({value}) != 16: raise Unwritable")
            self._pack(value, FORMATS["uuid"])
        elif field.element in FORMATS:
            self._pack(value, FORMATS[field.element])
        else:
            self._chunk(field, value)

    def _inner_struct(self, field: Field, struct: StructSchema, value: str, depth: int, *, is_tagged: bool) -> None:
        var = f"m{depth + 1}"
        if self.version not in field.nullable:
            self.line(f"{var} = {value}")
            self._struct(struct, var)
            # The same variable may hold another struct later.
            self._flush()
            return
        self._flush()
        self.line(f"{var} = {value}")
        self.line(f"if {var} is None:")
        self.line(r'    parts.append(b"\0")' if is_tagged else r'    parts.append(b"\xff")')
        self.line("else:")
        self.indent()
        self._part(r'b"\1"')
        self._struct(struct, var)
        self._flush()
        self.indent(-1)

    def _chunk(self, field: Field, value: str) -> None:
        """Emit the code for a string, bytes or records."""
        compact, kind = self.is_compact(field), field.element
        chunk, length = self.unique("s"), self.unique("n")
        self.line(f"{chunk} = {value}")
        if self.version in field.nullable:
            self.line(f"if {chunk} is None:")
            self.line(f'    {chunk} = b""; {length} = {0 if compact else -1}')
            self.line("else:")
            self.indent()
        if kind == "string":
            self.line(f"{chunk} = {chunk}.encode()")
        self.line(f"{length} = len({chunk}){' + 1' if compact else ''}")
        if self.version in field.nullable:
            self.indent(-1)
        if compact:
            longer = "string_length" if kind == "string" else "uvarint"
            self._part(f"BYTE[{length}] if {length} < 128 else {longer}({length})")
        else:
            self._pack(length, "h" if kind == "string" else "i")
        self._part(chunk)

    def _array(self, field: Field, value: str, depth: int) -> None:
        compact = self.is_compact(field)
        array, length = self.unique("a"), self.unique("n")
        self.line(f"{array} = {value}")
        count = f"len({array}){' + 1' if compact else ''}"
        nullable = self.version in field.nullable
        if nullable:
            count = f"{0 if compact else -1} if {array} is None else {count}"
        self.line(f"{length} = {count}")
        if compact:
            self._part(f"BYTE[{length}] if {length} < 128 else uvarint({length})")
        else:
            self._pack(length, "i")
        if field.struct is None:
            self._part(f'{self._primitive_array(field, array, compact)} if {array} else b""')
            return
        self._flush()
        var = f"m{depth + 1}"
        self.line(f"for {var} in {array} or ():" if nullable else f"for {var} in {array}:")
        self.indent()
        self._struct(field.struct, var)
        self._flush()
        self.indent(-1)

    def _primitive_array(self, field: Field, array: str, compact: bool) -> str:
        if field.element in NUMBERS:
            kept = self.constant(f"write_{field.element}", [layout.pack for layout in ARRAYS[field.element]])
            few, many = f"{kept}[len({array})](*{array})", f'write_numbers("{field.element}", {array})'
            return f"({few} if len({array}) < {ARRAYS_KEPT} else {many})"
        if field.element == "uuid":
            return f"write_uuids({array})"
        if field.element == "string":
            return f"write_strings({array}, {compact})"
        return f"write_chunks({array}, False, {compact})"


def _struct_of(field: Field) -> StructSchema:
    assert field.struct is not None
    return field.struct
