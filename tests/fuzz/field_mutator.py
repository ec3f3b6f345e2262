"""FieldMutator: changes one field of a message to an odd value that its type allows."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from tailrace.protocol.codegen.schema import Field
from tailrace.protocol.message import Message, Struct
from tests.fuzz.bytes_mutator import INVALID_MARK, NUMBERS
from tests.fuzz.records_mutator import damage_records
from tests.unit.protocol.random_messages import INTEGERS

STRINGS = (
    "", "orders", "compacted", "timed", "small", "sequenced", "empty", "with_dot", "0", "1", "-1", "x" * 249, "é" * 90,
    "__cluster_metadata", "__consumer_offsets", "a/b", "..", "\x00", "𝄞", "1e400", "nan", "9" * 400, "cleanup.policy",
    "segment.bytes", "retention.ms", "max.message.bytes", "message.timestamp.type", "compact,delete", "zstd", "user",
    "x" * 32_767, "é" * 16_383, INVALID_MARK * 6_000, INVALID_MARK,
    "client-id", "ip", "metadata.version", "log.retention.ms", "leader.replication.throttled.replicas", "0:0,1:1", "*",
)  # fmt: skip


class FieldMutator:
    def __init__(self, ids: Sequence[bytes] = (), strings: Sequence[str] = STRINGS) -> None:
        self._ids = ids
        self._strings = strings

    def change(self, message: Message, version: int, dice: random.Random) -> None:
        self._change(message, message, version, dice)

    def _change(self, message: Message, struct: Struct, version: int, dice: random.Random) -> None:
        fields = [field for field in struct.SCHEMA.fields if version in field.versions]
        if not fields:
            return
        field = dice.choice(fields)
        value = getattr(struct, field.attribute)
        if field.struct is not None and value and dice.random() < 0.8:
            inner = dice.choice(value) if field.is_array else value
            if isinstance(inner, Struct) and inner is not getattr(type(inner), "DEFAULT", None):
                self._change(message, inner, version, dice)
                return
        setattr(struct, field.attribute, self._other(message, field, value, version, dice))

    def _other(self, message: Message, field: Field, value: Any, version: int, dice: random.Random) -> Any:
        if version in field.nullable and dice.random() < 0.15:
            return None
        if field.is_array:
            elements = list(value or ())
            if elements and dice.random() < 0.4:
                chosen = dice.choice(elements)
                return dice.choice(([*elements, chosen], [chosen], [chosen] * 50, elements[1:], elements[::-1]))
            return [*elements, self._element(message, field, dice)]
        return self._element(message, field, dice, value)

    def _element(self, message: Message, field: Field, dice: random.Random, value: Any = None) -> Any:
        kind = field.element
        if field.struct is not None:
            return message.STRUCTS[field.struct]()
        if kind in INTEGERS:
            low, high = INTEGERS[kind]
            near = value if isinstance(value, int) else 0
            number = dice.choice((*NUMBERS, *range(6), near + 1, near - 1, dice.randint(low, high)))
            return min(max(number, low), high)
        if kind == "bool":
            return not value
        if kind == "float64":
            return dice.choice((0.0, -1.0, 0.5, 1e300, float("inf"), float("nan"), 1024.0))
        if kind == "uuid":
            return dice.choice((bytes(16), b"\xff" * 16, dice.randbytes(16), *self._ids))
        if kind == "string":
            return dice.choice(self._strings)
        if value:
            return damage_records(bytes(value), dice)
        return dice.choice((b"", dice.randbytes(30)))
