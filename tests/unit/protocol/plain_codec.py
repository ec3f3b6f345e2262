"""A codec that walks the schema value by value: slow, simple, and the measure for the compiled one."""

from __future__ import annotations

from typing import Any

from tailrace.protocol.codegen.schema import Field, StructSchema
from tailrace.protocol.message import Message, Struct
from tailrace.protocol.primitives import FORMATS, Reader, Writer
from tailrace.protocol.registry import message_class


class PlainCodec:
    def __init__(self, name: str, version: int) -> None:
        self.message = message_class(name)
        self.version = version
        self.is_flexible = version in self.message.SCHEMA.flexible

    def _class_of(self, struct: StructSchema) -> type[Struct]:
        return self.message if struct is self.message.SCHEMA else self.message.STRUCTS[struct]

    def _is_compact(self, field: Field) -> bool:
        return self.is_flexible if field.flexible is None else self.version in field.flexible

    # reading

    def decode(self, data: bytes) -> Message:
        reader = Reader(data)
        made = self._read_struct(reader, self.message.SCHEMA)
        assert reader.remaining == 0
        assert isinstance(made, Message)
        return made

    def _read_struct(self, reader: Reader, struct: StructSchema) -> Struct:
        made = self._class_of(struct)()
        for field in struct.untagged(self.version):
            setattr(made, field.attribute, self._read_field(reader, field, is_tagged=False))
        if self.is_flexible:
            known = {field.tag: field for field in struct.tagged(self.version)}
            unknown = []
            for tag, content in reader.tags():
                if tag in known:
                    value = self._read_field(Reader(content), known[tag], is_tagged=True)
                    setattr(made, known[tag].attribute, value)
                else:
                    unknown.append((tag, content))
            made.unknown_tags = tuple(unknown)
        return made

    def _read_field(self, reader: Reader, field: Field, *, is_tagged: bool) -> Any:
        if field.is_array:
            return reader.array(lambda: self._read_element(reader, field), compact=self._is_compact(field))
        if field.struct is not None and self.version in field.nullable:
            is_null = reader.uvarint() == 0 if is_tagged else reader.int8() < 0
            return None if is_null else self._read_struct(reader, field.struct)
        return self._read_element(reader, field)

    def _read_element(self, reader: Reader, field: Field) -> Any:
        if field.struct is not None:
            return self._read_struct(reader, field.struct)
        if field.element == "uuid":
            return reader.uuid()
        if field.element in FORMATS:
            return reader.number(field.element)
        if field.element == "string":
            return reader.string(compact=self._is_compact(field))
        return reader.blob(compact=self._is_compact(field))

    # writing

    def encode(self, message: Message) -> bytes:
        writer = Writer()
        self._write_struct(writer, message)
        return writer.getvalue()

    def _write_struct(self, writer: Writer, struct: Struct) -> None:
        for field in struct.SCHEMA.untagged(self.version):
            self._write_field(writer, getattr(struct, field.attribute), field, is_tagged=False)
        if self.is_flexible:
            known = []
            for field in struct.SCHEMA.tagged(self.version):
                value = getattr(struct, field.attribute)
                if not field.is_default(value):
                    content = Writer()
                    self._write_field(content, value, field, is_tagged=True)
                    known.append((field.tag or 0, content.getvalue()))
            writer.tags(known, struct.unknown_tags)

    def _write_field(self, writer: Writer, value: Any, field: Field, *, is_tagged: bool) -> None:
        if field.is_array:
            writer.array(value, lambda one: self._write_element(writer, one, field), compact=self._is_compact(field))
        elif field.struct is not None and self.version in field.nullable and value is None:
            writer.raw(b"\0" if is_tagged else b"\xff")
        elif field.struct is not None and self.version in field.nullable:
            writer.int8(1)
            self._write_struct(writer, value)
        else:
            self._write_element(writer, value, field)

    def _write_element(self, writer: Writer, value: Any, field: Field) -> None:
        if field.struct is not None:
            self._write_struct(writer, value)
        elif field.element == "uuid":
            writer.uuid(value)
        elif field.element in FORMATS:
            writer.number(field.element, value)
        elif field.element == "string":
            writer.string(value, compact=self._is_compact(field))
        else:
            writer.blob(value, compact=self._is_compact(field))
