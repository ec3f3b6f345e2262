"""Random messages of any class and version, for the tests that compare codecs."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

from tailrace.protocol.codegen.schema import Field, StructSchema, message_names
from tailrace.protocol.message import Message, Struct
from tailrace.protocol.registry import message_class

INTEGERS = {
    "int8": (-(2**7), 2**7 - 1),
    "int16": (-(2**15), 2**15 - 1),
    "uint16": (0, 2**16 - 1),
    "int32": (-(2**31), 2**31 - 1),
    "uint32": (0, 2**32 - 1),
    "int64": (-(2**63), 2**63 - 1),
}
ALPHABET = 'abcxyz0-_. äß€𝄞"\\\n'


def every_version() -> list[tuple[str, int]]:
    """Return each message with each of its versions."""
    return [(name, version) for name in message_names() for version in message_class(name).SCHEMA.versions]


def random_message(
    name: str, version: int, seed: int, *, unknown_tags: bool = False, most: int = 3, modest: bool = False
) -> Message:
    """Return a random message that the version can encode. The same seed gives the same message.

    Arrays of structs have up to `most` elements. A modest message has only plausible numbers: times lie within this
    century, errors are known.
    """
    maker = _Maker(random.Random(f"{name} {version} {seed}"), message_class(name), version, unknown_tags, most, modest)
    made = maker.struct(message_class(name).SCHEMA, message_class(name))
    assert isinstance(made, Message)
    return made


def unencodable_messages(name: str, version: int, seed: int) -> Iterator[tuple[str, Message]]:
    """Yield messages with one value that the version may be unable to encode: a field of other versions, or null.

    There is one message for each field, with the name of the field. In arrays only the first struct is changed.
    """
    dice = random.Random(f"{name} {version} {seed}")
    maker = _Maker(dice, message_class(name), version, unknown_tags=False, most=1, modest=False)
    for path in _places(message_class(name).SCHEMA, version, ()):
        field = path[-1]
        values = [None] if field.nullable and version not in field.nullable else []
        if version not in field.versions:
            values.append(maker.element(field) if not field.is_array else [maker.element(field)])
        for value in values:
            yield ".".join(step.attribute for step in path), _planted(maker, path, value)


def extreme_messages(name: str, version: int, seed: int) -> Iterator[tuple[str, Message]]:
    """Yield messages with one value at or beyond a limit of its type: one message for each field of the version and
    each of `_extremes`, with the name of the field."""
    dice = random.Random(f"{name} {version} {seed}")
    maker = _Maker(dice, message_class(name), version, unknown_tags=False, most=1, modest=False)
    for path in _places(message_class(name).SCHEMA, version, ()):
        field = path[-1]
        if version in field.versions:
            for value in _extremes(field):
                planted = [value] if field.is_array else value
                yield ".".join(step.attribute for step in path), _planted(maker, path, planted)


def _extremes(field: Field) -> list[Any]:
    if field.element == "string":
        return [
            "",
            "x" * 126,
            "x" * 127,
            "x" * 32767,
            "x" * 32768,
            "€" * 10922,
            "€" * 12000,
            "x" * 70000,
            "\ud800",
            "\0",
        ]
    if field.element in INTEGERS:
        low, high = INTEGERS[field.element]
        return [low, high, low - 1, high + 1]
    if field.element == "uuid":
        return [bytes(15), bytes(17), b"\xff" * 16]
    if field.element == "float64":
        return [10**400, -0.0, 1.7e308]
    return [b"x" * 126, b"x" * 70000] if field.element in ("bytes", "records") else []


def _planted(maker: _Maker, path: tuple[Field, ...], value: Any) -> Message:
    """Return a random message with one value at the end of a path."""
    message = maker.struct(maker.message.SCHEMA, maker.message)
    struct: Any = message
    for step in path[:-1]:
        inner = maker.element(step)
        setattr(struct, step.attribute, [inner] if step.is_array else inner)
        struct = inner
    setattr(struct, path[-1].attribute, value)
    assert isinstance(message, Message)
    return message


def _places(struct: StructSchema, version: int, path: tuple[Field, ...]) -> Iterator[tuple[Field, ...]]:
    for field in struct.fields:
        if field.struct is None:
            yield (*path, field)
        elif version in field.versions:
            yield from _places(field.struct, version, (*path, field))


class _Maker:
    def __init__(
        self, dice: random.Random, message: type[Message], version: int, unknown_tags: bool, most: int, modest: bool
    ) -> None:
        self.dice = dice
        self.message = message
        self.version = version
        self.unknown_tags = unknown_tags and version in message.SCHEMA.flexible
        self.most = most
        self.modest = modest

    def struct(self, schema: StructSchema, struct_class: type[Struct]) -> Struct:
        made = struct_class()
        for field in schema.fields:
            if self.version in field.versions and (self.version not in field.tagged or self.dice.random() < 0.5):
                setattr(made, field.attribute, self.value(field))
        if self.unknown_tags and self.dice.random() < 0.3:
            numbers = sorted({self.dice.choice((20, 21, 127, 128, 300, 70000)) for _ in range(3)})
            made.unknown_tags = tuple((tag, self.dice.randbytes(self.dice.choice((0, 1, 200)))) for tag in numbers)
        return made

    def value(self, field: Field) -> Any:
        if self.version in field.nullable and self.dice.random() < 0.25:
            return None
        if field.is_array:
            # Now and then one that needs a longer length; not of structs, whose nesting would multiply it.
            count = (
                self.dice.choice((0, 1, self.most, 130)) if field.struct is None else self.dice.randint(0, self.most)
            )
            return [self.element(field) for _ in range(count)]
        return self.element(field)

    def element(self, field: Field) -> Any:
        dice, kind = self.dice, field.element
        if field.struct is not None:
            return self.struct(field.struct, self.message.STRUCTS[field.struct])
        if kind in INTEGERS:
            low, high = INTEGERS[kind]
            if self.modest:
                return dice.randint(0, min(high, 98 if kind == "int16" else 10**12))
            return dice.choice((0, low, high, dice.randint(low, high), dice.randint(0, 100)))
        if kind == "bool":
            return dice.random() < 0.5
        if kind == "float64":
            return dice.choice((0.0, -1.5, 1e300, float(dice.randint(0, 1000))))
        if kind == "uuid":
            return dice.randbytes(16)
        length = dice.choice((0, 1, 7, 126, 127, 128, 300))
        if kind == "string":
            return "".join(dice.choices(ALPHABET, k=length))
        return dice.randbytes(length)
