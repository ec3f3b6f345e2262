"""kio, an independent codec for the same protocol, reads what we write and writes what we read."""

from __future__ import annotations

import dataclasses
import datetime
import io
import uuid
from pkgutil import resolve_name
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kio.schema.index import schema_name_map
from kio.serial import entity_reader, entity_writer

from tailrace.protocol.message import Struct
from tailrace.protocol.registry import message_class
from tests.unit.protocol.random_messages import random_message

EPOCH = datetime.datetime.fromtimestamp(0, datetime.UTC)


def kio_classes() -> dict[str, dict[int, str]]:
    """Return the path of kio's class for each version of each message, by our name of the message."""
    found: dict[str, dict[int, str]] = {}
    for versions in schema_name_map.values():
        for version, paths in versions.items():
            for path in paths.values():
                found.setdefault(path.partition(":")[2], {})[version] = path
    return found


KIO = kio_classes()


def agrees(ours: Struct, theirs: Any, version: int) -> bool:
    """Return True if both hold the same values. kio keeps the order of fields but not all their names."""
    fields = [field for field in ours.SCHEMA.fields if version in field.versions]
    values = [getattr(theirs, field.name) for field in dataclasses.fields(theirs)]
    assert len(fields) == len(values), (fields, theirs)
    return all(
        same(getattr(ours, field.attribute), value, version) for field, value in zip(fields, values, strict=True)
    )


def same(ours: Any, theirs: Any, version: int) -> bool:
    if isinstance(ours, Struct):
        return agrees(ours, theirs, version)
    if isinstance(ours, list):
        return len(ours) == len(theirs) and all(same(a, b, version) for a, b in zip(ours, theirs, strict=True))
    if isinstance(theirs, uuid.UUID):
        return ours == theirs.bytes
    if isinstance(theirs, datetime.timedelta):
        return ours == theirs // datetime.timedelta(milliseconds=1)
    if isinstance(theirs, datetime.datetime):
        return ours == (theirs - EPOCH) // datetime.timedelta(milliseconds=1)
    if theirs is None:  # kio's way to say "no uuid"
        return ours is None or ours == bytes(16)
    return ours == theirs


def test_the_comparison_with_kio_covers_most_messages() -> None:
    """The comparison below is not about nothing."""
    assert len(KIO) > 170
    assert sum(map(len, KIO.values())) > 600


@pytest.mark.parametrize("name", sorted(KIO))
@settings(max_examples=6, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(seed=st.integers(0, 2**32))
def test_kio_and_the_codec_read_each_others_bytes(name: str, seed: int) -> None:
    for version, path in KIO[name].items():
        message = random_message(name, version, seed, modest=True)
        data = message.encode(version)
        their_class = resolve_name(path)
        theirs, size = entity_reader(their_class)(data, 0)
        assert size == len(data)
        assert agrees(message, theirs, version)
        written = io.BytesIO()
        entity_writer(their_class)(written, theirs)
        assert message_class(name).decode(written.getvalue(), version) == message
