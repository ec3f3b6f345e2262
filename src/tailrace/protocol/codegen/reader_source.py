"""ReaderSource: the Python that reads one version of one message.

Every generated function ends in one `except`, which turns a read past the end of the buffer into MalformedMessage.
`struct` and indexing check their bounds themselves. Generated code checks the bounds before each slice, because slicing
does not.

`left` is the number of array elements and unknown tagged fields that may still be decoded. The caller limits them,
because an element takes much more memory and time than the byte or two that it may have in the message.
"""

from __future__ import annotations

import struct
from typing import Any

from tailrace.protocol.codegen.schema import Field, StructSchema
from tailrace.protocol.codegen.source import NUMBERS, Source
from tailrace.protocol.errors import MalformedMessage
from tailrace.protocol.primitives import (
    ARRAYS,
    ARRAYS_KEPT,
    ELEMENTS_UNLIMITED,
    FORMATS,
    SIZES,
    STRING_MAX,
    STRING_SAFE,
    read_chunks,
    read_numbers,
    read_strings,
    read_tags,
    read_text,
    read_uuids,
    too_many_elements,
    uvarint_tail,
)


class ReaderSource(Source):
    def __init__(self, message_class: Any, version: int) -> None:
        super().__init__(message_class, version)
        self.names |= {
            "new": object.__new__, "tail": uvarint_tail, "Malformed": MalformedMessage, "StructError": struct.error,
            "read_numbers": read_numbers, "read_uuids": read_uuids, "read_strings": read_strings,
            "read_chunks": read_chunks, "read_tags": read_tags, "read_text": read_text, "too_many": too_many_elements,
        }  # fmt: skip
        self._run: list[tuple[str, str]] = []  # targets and format codes of the next struct call
        self._has_records = any(_holds_records(struct) for struct in (self.schema, *message_class.STRUCTS))

    def text(self) -> str:
        self.line(f"def main(buf, pos, left={ELEMENTS_UNLIMITED}):")
        self.indent()
        if self._has_records:
            self.line("view = memoryview(buf)")
        else:
            self.line("if type(buf) is not bytes:")
            self.line("    buf = bytes(buf)")
        self._guarded_body(lambda: self._struct(self.schema, "m0"))
        self._lines.append("    return m0, pos")
        self.finish_function(([], 0))
        return "\n\n".join(self.functions)

    def _guarded_body(self, body: Any) -> None:
        self.line("end = len(buf)")
        self.line("try:")
        self.indent()
        body()
        self._flush()
        self.indent(-1)
        self.line("except (IndexError, StructError):")
        self.line('    raise Malformed(WHAT, "ends too early", pos) from None')

    # ------------------------------------------------------------------------------------------------ fixed-size runs

    def _fill(self, target: str, code: str) -> None:
        """Add a target to the next struct call."""
        self._run.append((target, code))

    def _flush(self) -> None:
        """Emit the struct call for the collected targets."""
        if not self._run:
            return
        targets = ", ".join(target for target, _ in self._run)
        codes = "".join(code for _, code in self._run)
        self._run = []
        if codes == "B":
            self.line(f"{targets} = buf[pos]; pos += 1")
            return
        method, size = self.layout(codes, "unpack_from")
        comma = "," if ", " not in targets else ""
        self.line(f"{targets}{comma} = {method}(buf, pos); pos += {size}")

    def _length(self, kind: str, compact: bool) -> None:
        """Read a length into n. A compact length stays one too large, and 0 means null."""
        self._fill("n", "B" if compact else "h" if kind == "string" else "i")
        self._flush()
        if compact:
            self.line("if n > 127: n, pos = tail(buf, pos, n)")

    # --------------------------------------------------------------------------------------------------------- structs

    def _struct(self, struct: StructSchema, var: str, path: str = "") -> None:
        """Make a struct in var and read its fields."""
        self.line(f"{var} = new({self.class_name(struct)})")
        tagged = struct.tagged(self.version)
        for field in (*struct.missing(self.version), *tagged):
            self.line(f"{var}.{field.attribute} = {self._default(field)}")
        for field in struct.untagged(self.version):
            self._field(field, f"{var}.{field.attribute}", f"{path}{field.attribute}", int(var[1:]), is_tagged=False)
        if not self.is_flexible:
            self._flush()
            self.line(f"{var}.unknown_tags = ()")
            return
        self._fill("n", "B")
        self._flush()
        if any(field.tag is not None for field in struct.fields):
            function = self._tags_function(struct, path)
            self.line(f"{var}.unknown_tags = ()")
            self.line(f"if n: pos, left = {function}({var}, buf, pos, n, left)")
        else:
            self.line("if n:")
            self.line("    if n > 127: n, pos = tail(buf, pos, n)")
            self.line("    left -= n")
            self.line("    if left < 0: raise too_many(WHAT, pos)")
            self.line(f"    {var}.unknown_tags, pos = read_tags(WHAT, buf, pos, n)")
            self.line("else:")
            self.line(f"    {var}.unknown_tags = ()")

    def _default(self, field: Field) -> str:
        if field.default is not ...:
            return repr(field.default)
        if field.is_array:
            return "[]"
        struct = _struct_of(field)
        return f"{self.class_name(struct)}()" if struct.holds_lists() else self.default_name(struct)

    def _tags_function(self, struct: StructSchema, path: str) -> str:
        """Return the name of a new function that reads a struct's tagged fields: (message, buffer, position, first byte
        of the count, left) → (end, left)."""
        name = self.unique("tags")
        aside, run = self.take_lines(), self._run
        self._run = []
        self.line(f"def {name}(m0, buf, pos, n, left):")
        self.indent()
        if self._has_records:
            self.line("view = memoryview(buf)")
        self._guarded_body(lambda: self._tags(struct, path))
        self.line("return pos, left")
        self.finish_function(aside)
        self._run = run
        return name

    def _tags(self, struct: StructSchema, path: str) -> None:
        self.line("if n > 127: n, pos = tail(buf, pos, n)")
        self.line("left -= n")
        self.line("if left < 0: raise too_many(WHAT, pos)")
        self.line("unknown = []")
        self.line("for _ in range(n):")
        self.indent()
        self.line("tag = buf[pos]; pos += 1")
        self.line("if tag > 127: tag, pos = tail(buf, pos, tag)")
        self.line("n = buf[pos]; pos += 1")
        self.line("if n > 127: n, pos = tail(buf, pos, n)")
        self.line("tag_stop = pos + n")
        self.line('if tag_stop > end: raise Malformed(WHAT, f"tagged field {tag} is longer than what follows", pos)')
        branch = "if"
        for field in struct.tagged(self.version):
            self.line(f"{branch} tag == {field.tag}:")
            self.indent()
            self._field(field, f"m0.{field.attribute}", f"{path}{field.attribute}", 0, is_tagged=True)
            self._flush()
            self.indent(-1)
            branch = "elif"
        # Kafka refuses a tag that only other versions define, so this reader does too.
        strangers = [f.tag for f in struct.fields if f.tag is not None and self.version not in f.tagged]
        if strangers:
            self.line(f"{branch} tag in {tuple(strangers)}:")
            self.line('    raise Malformed(WHAT, f"tagged field {tag} does not belong to this version", pos)')
            branch = "elif"
        self.line("else:")
        self.line("    unknown.append((tag, bytes(buf[pos:tag_stop]))); pos = tag_stop")
        self.line("if pos != tag_stop:")
        self.line('    raise Malformed(WHAT, f"tagged field {tag} is not as long as it says", pos)')
        self.indent(-1)
        self.line("if unknown: m0.unknown_tags = tuple(unknown)")

    # ---------------------------------------------------------------------------------------------------------- fields

    def _field(self, field: Field, target: str, path: str, depth: int, *, is_tagged: bool) -> None:
        if field.is_array:
            self._array(field, target, path, depth)
        elif field.struct is not None:
            self._inner_struct(field, field.struct, target, path, depth, is_tagged=is_tagged)
        elif field.element in FORMATS:
            self._fill(target, FORMATS[field.element])
        else:
            self._chunk(field, target, path)

    def _inner_struct(
        self, field: Field, struct: StructSchema, target: str, path: str, depth: int, *, is_tagged: bool
    ) -> None:
        var = f"m{depth + 1}"
        nullable = self.version in field.nullable
        if nullable:  # a byte shows null: negative if untagged, 0 if tagged
            self._fill("n", "B" if is_tagged else "b")
            self._flush()
            self.line(f"if n {'== 0' if is_tagged else '< 0'}:")
            self.line(f"    {target} = None")
            self.line("else:")
            self.indent()
        self._struct(struct, var, f"{path}.")
        self._flush()
        self.line(f"{target} = {var}")
        if nullable:
            self.indent(-1)

    def _null(self, field: Field, target: str, path: str, condition: str) -> None:
        """Emit the handling of null, as an `if` that an `else` must follow."""
        self.line(f"if {condition}:")
        if self.version in field.nullable:
            self.line(f"    {target} = None")
        else:
            self.line(f'    raise Malformed(WHAT, "{path} must not be null", pos)')
        self.line("else:")

    def _chunk(self, field: Field, target: str, path: str) -> None:
        """Emit the code for a string, bytes or records."""
        compact = self.is_compact(field)
        self._length(field.element, compact)
        self._null(field, target, path, "n == 0" if compact else "n < 0")
        self.indent()
        self.line("stop = pos + n - 1" if compact else "stop = pos + n")
        self.line(f'if stop > end: raise Malformed(WHAT, "{path} is longer than what follows", pos)')
        if field.element == "string":
            if compact:
                self.line(f'if n > {STRING_MAX + 1}: raise Malformed(WHAT, "{path} is too long for a string", pos)')
            # A memoryview has no decode method.
            source = "bytes(buf[pos:stop])" if self._has_records else "buf[pos:stop]"
            self.line(f"if n > {STRING_SAFE}: {target} = read_text(WHAT, {source}, pos)")
            self.line(f'else: {target} = {source}.decode("utf-8", "replace")')
        elif field.element == "records":
            self.line(f"{target} = view[pos:stop]")
        else:
            self.line(f"{target} = bytes(buf[pos:stop])")
        self.line("pos = stop")
        self.indent(-1)

    def _array(self, field: Field, target: str, path: str, depth: int) -> None:
        compact = self.is_compact(field)
        self._length("array", compact)
        self._null(field, target, path, "n == 0" if compact else "n < 0")
        self.indent()
        if compact:
            self.line("n -= 1")
        self.line("left -= n")  # numbers too: in many responses each number becomes a struct
        self.line("if left < 0: raise too_many(WHAT, pos)")
        if field.struct is None:
            self._primitive_array(field, target, compact)
        else:
            self._struct_array(field.struct, target, path, depth)
        self.indent(-1)

    def _primitive_array(self, field: Field, target: str, compact: bool) -> None:
        if field.element in NUMBERS:
            kept = self.constant(f"read_{field.element}", [layout.unpack_from for layout in ARRAYS[field.element]])
            self.line(f"if n < {ARRAYS_KEPT}: {target} = list({kept}[n](buf, pos)); pos += {SIZES[field.element]} * n")
            self.line(f'else: {target}, pos = read_numbers("{field.element}", buf, pos, n)')
            return
        if field.element == "uuid":
            call = "read_uuids(buf, pos, n)"
        elif field.element == "string":
            call = f"read_strings(buf, pos, n, {compact})"
        else:
            call = f"read_chunks(buf, pos, n, False, {compact})"
        self.line(f"{target}, pos = {call}")

    def _struct_array(self, struct: StructSchema, target: str, path: str, depth: int) -> None:
        least = self._least_size(struct)
        self.line(f'if n * {least} > end - pos: raise Malformed(WHAT, f"{path} has no room for {{n}} elements", pos)')
        var, array = f"m{depth + 1}", f"a{depth + 1}"
        self.line(f"{array} = {target} = []")
        self.line("for _ in range(n):")
        self.indent()
        self._struct(struct, var, f"{path}.")
        self._flush()
        self.line(f"{array}.append({var})")
        self.indent(-1)

    def _least_size(self, struct: StructSchema) -> int:
        """Return the smallest number of bytes that a struct can have."""
        least = 1 if self.is_flexible else 0
        for field in struct.untagged(self.version):
            if not field.is_array and field.struct is None and field.element in SIZES:
                least += SIZES[field.element]
            elif not field.is_array and field.struct is not None:
                least += 1 if self.version in field.nullable else self._least_size(field.struct)
            elif self.is_compact(field):
                least += 1
            else:
                least += 2 if field.type == "string" else 4
        assert least, f"{struct.name} can be empty, so the bytes do not limit the number of its elements"
        return least


def _holds_records(struct: StructSchema) -> bool:
    return any(field.element == "records" for field in struct.fields)


def _struct_of(field: Field) -> StructSchema:
    assert field.struct is not None
    return field.struct
