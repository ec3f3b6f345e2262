"""Mutation of requests that knows their fields: most results are still requests, odd ones.

A frame is decoded, one of its fields is changed, and it is encoded again, in the same version or another; or its bytes
are damaged; or frames are added, dropped and exchanged.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from tailrace.broker.requests.api_table import API_TABLE
from tailrace.protocol.codegen.schema import Field
from tailrace.protocol.errors import ProtocolError
from tailrace.protocol.headers import read_request_header, write_request_header
from tailrace.protocol.message import Message, Struct
from tailrace.protocol.registry import request_class
from tests.fuzz.bytes_mutator import INVALID_MARK, NUMBERS, damage, with_invalid_text
from tests.fuzz.frames import join_frames, split_frames
from tests.fuzz.records_mutator import damage_records
from tests.unit.protocol.random_messages import INTEGERS, random_message

FRAMES_MAX = 12
_STRINGS = (
    "", "orders", "compacted", "timed", "small", "sequenced", "empty", "with_dot", "0", "1", "-1", "x" * 249, "é" * 90,
    "__cluster_metadata", "__consumer_offsets", "a/b", "..", "\x00", "𝄞", "1e400", "nan", "9" * 400, "cleanup.policy",
    "segment.bytes", "retention.ms", "max.message.bytes", "message.timestamp.type", "compact,delete", "zstd", "user",
    "x" * 32_767, "é" * 16_383, INVALID_MARK * 6_000, INVALID_MARK,
    "client-id", "ip", "metadata.version", "log.retention.ms", "leader.replication.throttled.replicas", "0:0,1:1", "*",
)  # fmt: skip


class RequestMutator:
    def __init__(self, seeds: Sequence[bytes]) -> None:
        self._seeds = seeds
        self._ids = sorted({seed[at : at + 16] for seed in seeds[:200] for at in (12, 20)})

    def mutate(self, data: bytes, dice: random.Random) -> bytes:
        frames = split_frames(data)
        if not frames:
            return join_frames([dice.choice(self._seeds)])
        for _ in range(dice.choice((1, 1, 2, 4))):
            self._mutate_frames(frames, dice)
        mutated = join_frames(frames[-FRAMES_MAX:])
        return damage(mutated, dice) if dice.random() < 0.02 else mutated

    def _mutate_frames(self, frames: list[bytes], dice: random.Random) -> None:
        where = dice.randrange(len(frames))
        choice = dice.random()
        if choice < 0.15:
            frames.insert(where, dice.choice(self._seeds))
        elif choice < 0.2 and len(frames) > 1:
            del frames[where]
        elif choice < 0.25:
            other = dice.randrange(len(frames))
            frames[where], frames[other] = frames[other], frames[where]
        elif choice < 0.35:
            frames[where] = damage(frames[where], dice, dice.choice((1, 1, 4)))
        else:
            frames[where] = self._mutate_request(frames[where], dice)

    def _mutate_request(self, frame: bytes, dice: random.Random) -> bytes:
        try:
            header, position = read_request_header(frame)
            row = API_TABLE[header.api_key]
            message, _ = request_class(header.api_key).read(frame, header.api_version, position)
        except (ProtocolError, KeyError):
            return damage(frame, dice)
        version = header.api_version
        if dice.random() < 0.2:
            version = dice.randint(row.min_version, row.max_version)
        elif dice.random() < 0.03:
            message = random_message(message.SCHEMA.name, version, dice.getrandbits(32), unknown_tags=True)
        for _ in range(dice.choice((1, 1, 2, 3))):
            self._change(message, message, version, dice)
        header = header._replace(api_version=version, correlation_id=dice.getrandbits(31))
        if dice.random() < 0.05:
            header = header._replace(client_id=dice.choice(_STRINGS))
        try:
            return with_invalid_text(write_request_header(header) + bytes(message.encode(version)))
        except ProtocolError:
            return damage(frame, dice)

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
            return dice.choice(_STRINGS)
        if value:
            return damage_records(bytes(value), dice)
        return dice.choice((b"", dice.randbytes(30)))
