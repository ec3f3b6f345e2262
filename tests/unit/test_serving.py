"""What a broker in a process of its own is given by its surroundings."""

from __future__ import annotations

import uuid

from tailrace.serving import random_id


def test_an_id_is_a_random_uuid_as_kafka_makes_them() -> None:
    ids = {random_id() for _ in range(200)}
    assert len(ids) == 200
    assert {(uuid.UUID(bytes=one).version, uuid.UUID(bytes=one).variant) for one in ids} == {(4, uuid.RFC_4122)}
