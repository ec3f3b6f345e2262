"""Every message in every version: the compiled codec is the plain one, only faster, and no bytes can upset it."""

from __future__ import annotations

import contextlib
import json
import random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tailrace.protocol.codegen.schema import message_names
from tailrace.protocol.errors import MalformedMessage, UnwritableMessage
from tailrace.protocol.json_form import to_dict
from tailrace.protocol.message import Message, Reader
from tailrace.protocol.registry import message_class
from tests.unit.protocol.plain_codec import PlainCodec
from tests.unit.protocol.random_messages import random_message

NAMES = message_names()
lean = settings(max_examples=4, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
thorough = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
SEEDS = st.integers(0, 2**32)


def check_agreement(name: str, seed: int) -> None:
    for version in message_class(name).SCHEMA.versions:
        message = random_message(name, version, seed, unknown_tags=True)
        data = message.encode(version)
        plain = PlainCodec(name, version)
        assert plain.encode(message) == data
        assert plain.decode(data) == message
        assert message_class(name).decode(data, version) == message
        assert message_class(name).decode(memoryview(b"*" + data)[1:], version) == message
        again, end = message_class(name).read(b"****" + data + b"!", version, 4)
        assert (again, end) == (message, 4 + len(data))


def check_mutations(name: str, seed: int, mutations: int) -> None:
    """Check that damaged bytes raise MalformedMessage or give a message that can be written or is refused."""
    dice = random.Random(seed)
    for version in message_class(name).SCHEMA.versions:
        read = message_class(name).reader(version)
        data = random_message(name, version, seed, unknown_tags=True, most=2).encode(version)
        for _ in range(mutations):
            damaged = mutate(data, dice)
            message = read_or_none(read, damaged)
            with contextlib.suppress(UnwritableMessage):  # the same tagged field twice
                if message is not None:
                    again = message_class(name).decode(message.encode(version), version)
                    assert json.dumps(to_dict(again, version)) == json.dumps(to_dict(message, version))


def read_or_none(read: Reader, data: bytes) -> Message | None:
    """Return the message that `read` returns, or None if it raises the one error that it may raise."""
    try:
        message, position = read(data, 0)
    except MalformedMessage as error:
        message, position = None, error.position
    assert 0 <= position <= len(data)
    return message


def mutate(data: bytes, dice: random.Random) -> bytes:
    damaged = bytearray(data)
    for _ in range(dice.randint(1, 3)):
        place = dice.randint(0, len(damaged))
        match dice.randrange(5):
            case 0:
                del damaged[place:]
            case 1:
                del damaged[place : place + dice.randint(1, 8)]
            case 2:
                damaged[place:place] = dice.choice(
                    (b"\xff\xff\xff\xff\x0f", b"\x7f\xff\xff\xff", b"\x80" * 6, b"\0" * 8)
                )
            case 3 if damaged:
                damaged[place - 1] ^= 1 << dice.randrange(8)
            case _ if damaged:
                damaged[place - 1] = dice.choice((0, 1, 0x7F, 0x80, 0xFE, 0xFF))
    return bytes(damaged)


@pytest.mark.parametrize("name", NAMES)
@lean
@given(seed=SEEDS)
def test_the_compiled_codec_equals_the_plain_codec(name: str, seed: int) -> None:
    check_agreement(name, seed)


@pytest.mark.parametrize("name", NAMES)
@lean
@given(seed=SEEDS)
def test_damaged_bytes_raise_only_malformed_message(name: str, seed: int) -> None:
    check_mutations(name, seed, mutations=6)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
@thorough
@given(seed=SEEDS)
def test_the_compiled_codec_equals_the_plain_codec_for_many_messages(name: str, seed: int) -> None:
    check_agreement(name, seed)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
@thorough
@given(seed=SEEDS)
def test_many_damaged_bytes_raise_only_malformed_message(name: str, seed: int) -> None:
    check_mutations(name, seed, mutations=50)


@pytest.mark.parametrize("name", NAMES)
def test_random_bytes_raise_only_malformed_message(name: str) -> None:
    dice = random.Random(name)
    for version in message_class(name).SCHEMA.versions:
        for size in (0, 1, 2, 5, 30, 200):
            read_or_none(message_class(name).reader(version), dice.randbytes(size))
