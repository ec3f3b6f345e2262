"""Random messages of any class and version, for the tests that compare codecs."""

from __future__ import annotations

import random
from typing import Any

from tailrace.protocol.message import Message, Struct
from tailrace.protocol.registry import message_class
from tailrace.protocol.schema import Field, StructSchema, message_names

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
    """Each message with each of its versions."""
    return [(name, version) for name in message_names() for version in message_class(name).SCHEMA.versions]


def random_message(
    name: str, version: int, seed: int, *, unknown_tags: bool = False, most: int = 3, modest: bool = False
) -> Message:
    """A message that version can carry; the same one for the same seed.

    Arrays of structs have up to `most` elements. In a modest one all numbers make sense: times lie within this century,
    errors are known.
    """
    maker = _Maker(random.Random(f"{name} {version} {seed}"), message_class(name), version, unknown_tags, most, modest)
    made = maker.struct(message_class(name).SCHEMA, message_class(name))
    assert isinstance(made, Message)
    return made


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
