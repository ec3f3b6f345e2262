"""Mutation of requests that knows their fields: most results are still requests, odd ones.

A frame is decoded, one of its fields is changed, and it is encoded again, in the same version or another; or its bytes
are damaged; or frames are added, dropped and exchanged.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from tailrace.broker.requests.api_table import API_TABLE
from tailrace.protocol.errors import ProtocolError
from tailrace.protocol.headers import read_request_header, write_request_header
from tailrace.protocol.registry import request_class
from tests.fuzz.bytes_mutator import damage, with_invalid_text
from tests.fuzz.field_mutator import STRINGS, FieldMutator
from tests.fuzz.frames import join_frames, split_frames
from tests.unit.protocol.random_messages import random_message

FRAMES_MAX = 12


class RequestMutator:
    def __init__(self, seeds: Sequence[bytes]) -> None:
        self._seeds = seeds
        self._fields = FieldMutator(sorted({seed[at : at + 16] for seed in seeds[:200] for at in (12, 20)}))

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
            self._fields.change(message, version, dice)
        header = header._replace(api_version=version, correlation_id=dice.getrandbits(31))
        if dice.random() < 0.05:
            header = header._replace(client_id=dice.choice(STRINGS))
        try:
            return with_invalid_text(write_request_header(header) + bytes(message.encode(version)))
        except ProtocolError:
            return damage(frame, dice)
