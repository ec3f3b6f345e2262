"""Message and Struct: one class per message, and one per struct inside it, for all versions.

    request = FetchRequest(max_wait_ms=500, topics=[FetchRequest.FetchTopic(topic="t")])
    data = request.encode(4)
    request = FetchRequest.decode(data, 4)

A class has the fields of all versions. After decoding, a field that the version lacks has its default. Encoding refuses
any other value for such a field, unless the schema calls the field ignorable, as in Kafka.

Python types: uuid is 16 raw bytes. Arrays are lists, but any sequence can be written. Decoded records are a memoryview
of the buffer. For encoding, records may be any object with a length. `write` puts the object itself among the parts, so
that a range of a file is sent without being read.

A struct field that is not null by default starts as one shared object that cannot be changed, unless it has lists.
Assign a new struct to the field instead.
Unknown tagged fields are kept in `unknown_tags` and written again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, ClassVar, NamedTuple, Self, TypeAlias

from tailrace.protocol.codegen.schema import MessageSchema, StructSchema
from tailrace.protocol.errors import MalformedMessage, UnwritableMessage
from tailrace.protocol.primitives import ELEMENTS_UNLIMITED, Buffer, Tags

Records: TypeAlias = Any  # decoded: a memoryview; to encode: any object with a length
Reader: TypeAlias = Callable[..., "tuple[Any, int]"]  # (buffer, position, limit of elements)
Writer: TypeAlias = Callable[[Any, list[Any]], None]


class Struct:
    """The base class of messages and their structs."""

    __slots__ = ("unknown_tags",)

    SCHEMA: ClassVar[StructSchema]
    DEFAULT: ClassVar[Struct]  # the initial value of fields of this type that do not start as null
    unknown_tags: Tags

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Struct):
            return NotImplemented
        if self.SCHEMA is not other.SCHEMA or self.unknown_tags != other.unknown_tags:
            return False
        return all(getattr(self, f.attribute) == getattr(other, f.attribute) for f in self.SCHEMA.fields)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        shown = [f"{name}={value!r}" for name, value in self._non_defaults()]
        return f"{self.SCHEMA.name}({', '.join(shown)})"

    def _non_defaults(self) -> Iterator[tuple[str, Any]]:
        """Yield the fields that are not at their default."""
        for field in self.SCHEMA.fields:
            value = getattr(self, field.attribute)
            if not field.is_default(value):
                yield field.attribute, value
        if self.unknown_tags:
            yield "unknown_tags", self.unknown_tags


class Message(Struct):
    """The outermost struct. A message has versions, and can encode and decode itself."""

    __slots__ = ()

    SCHEMA: ClassVar[MessageSchema]
    STRUCTS: ClassVar[dict[StructSchema, type[Struct]]]
    _readers: ClassVar[dict[int, Reader]]
    _writers: ClassVar[dict[int, Writer]]

    @classmethod
    def reader(cls, version: int) -> Reader:
        """Return the function (buffer, position) → (message, end) of a version. Raise UnsupportedVersion if there is
        none."""
        try:
            return cls._readers[version]
        except KeyError:
            from tailrace.protocol.codegen.compiler import (
                compile_reader,  # imported here, because most programs start without it
            )

            return cls._readers.setdefault(version, compile_reader(cls, version))

    @classmethod
    def writer(cls, version: int) -> Writer:
        """Return the function (message, parts) of a version that appends the message. Raise UnsupportedVersion if there
        is none."""
        try:
            return cls._writers[version]
        except KeyError:
            from tailrace.protocol.codegen.compiler import compile_writer

            return cls._writers.setdefault(version, compile_writer(cls, version))

    @classmethod
    def read(
        cls, buffer: Buffer, version: int, position: int = 0, elements_max: int = ELEMENTS_UNLIMITED
    ) -> tuple[Self, int]:
        """Return the message that starts at a position, and its end. Raise TooManyElements if its arrays exceed the
        limit."""
        message, end = cls.reader(version)(buffer, position, elements_max)
        return message, end

    @classmethod
    def decode(cls, buffer: Buffer, version: int, position: int = 0) -> Self:
        """Return the message that fills the buffer from a position to the end."""
        message, end = cls.reader(version)(buffer, position)
        if end != len(buffer):
            raise MalformedMessage(f"{cls.SCHEMA.name} v{version}", f"is followed by {len(buffer) - end} bytes", end)
        return message  # type: ignore[no-any-return]

    def write(self, parts: list[Any], version: int) -> None:
        """Append the message to the parts. Records are appended without copying."""
        self.writer(version)(self, parts)

    def encode(self, version: int) -> bytes:
        parts: list[Any] = []
        self.writer(version)(self, parts)
        try:
            return b"".join(parts)
        except TypeError as error:
            raise UnwritableMessage(f"{self.SCHEMA.name} v{version}: {error}") from error


class VersionedMessage(NamedTuple):
    """A message and the version in which it was decoded."""

    name: str
    version: int
    message: Message


# ----------------------------------------------------------------------------------------------------- making classes


def make_message_class(schema: MessageSchema, module: str) -> type[Message]:
    """Return the class for a schema, with the classes of its structs as attributes."""
    structs: dict[StructSchema, type[Struct]] = {}
    for struct in _structs_inside(schema):
        structs[struct] = _make_class(struct, Struct, structs, module, f"{schema.name}.{struct.name}")
    made: Any = _make_class(schema, Message, structs, module, schema.name)
    for struct, struct_class in structs.items():
        assert not hasattr(made, struct.name), f"{schema.name} has two structs called {struct.name}"
        setattr(made, struct.name, struct_class)
    made.STRUCTS = structs
    made._readers = {}
    made._writers = {}
    return made  # type: ignore[no-any-return]


def _structs_inside(schema: StructSchema) -> Iterator[StructSchema]:
    """Yield the structs of a message, each after the structs that it contains."""
    seen = set()
    for field in schema.fields:
        if field.struct is not None:
            for struct in (*_structs_inside(field.struct), field.struct):
                if struct not in seen:
                    seen.add(struct)
                    yield struct


def _make_class(
    schema: StructSchema, base: type[Struct], structs: dict[StructSchema, type[Struct]], module: str, qualname: str
) -> type[Struct]:
    attributes = [field.attribute for field in schema.fields]
    assert not set(attributes) & set(dir(base)), f"{qualname} has a field that hides a method"
    parameters, body = [], []
    namespace: dict[str, Any] = {}
    for field in schema.fields:
        name = field.attribute
        if field.default is ... and field.is_array:
            parameters.append(f"{name}=...")
            body.append(f"    self.{name} = [] if {name} is ... else {name}")
            continue
        namespace[f"_{name}"] = field.default
        if field.default is ...:
            assert field.struct is not None
            inner = structs[field.struct]
            if "DEFAULT" not in vars(inner):
                inner.DEFAULT = _frozen_default(inner)
            namespace[f"_{name}"] = inner.DEFAULT
            if field.struct.holds_lists():  # the lists of a frozen struct can change, so each message gets its own
                namespace[f"_{name}"] = inner
                parameters.append(f"{name}=...")
                body.append(f"    self.{name} = _{name}() if {name} is ... else {name}")
                continue
        parameters.append(f"{name}=_{name}")
        body.append(f"    self.{name} = {name}")
    signature = ", ".join(["self", *(["*", *parameters] if parameters else [])])
    exec("\n".join([f"def __init__({signature}):", *body, "    self.unknown_tags = ()"]), namespace)
    return type(
        schema.name,
        (base,),
        {
            "__slots__": tuple(attributes),
            "__init__": namespace["__init__"],
            "__module__": module,
            "__qualname__": qualname,
            "SCHEMA": schema,
        },
    )


def _frozen_default(struct_class: type[Struct]) -> Struct:
    """Return a read-only struct that stands for the default of its class."""

    def refuse(self: Struct, name: str, value: object) -> None:
        raise AttributeError(f"the default {self.SCHEMA.name} is shared: assign a new one instead")

    frozen: Any = type(
        struct_class.__name__,
        (struct_class,),
        {"__slots__": (), "__setattr__": refuse, "__reduce__": lambda self: (struct_class, ())},
    )
    made = struct_class()
    made.__class__ = frozen
    return made
