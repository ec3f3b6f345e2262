"""Remote segments for tests: a few values that differ, and random records about them."""

from __future__ import annotations

import random
import uuid

from tailrace.model.ids import TopicId
from tailrace.tiers.metadata.segment_records import SegmentUpdate
from tailrace.tiers.remote_segment import RemoteSegment, RemoteSegmentId, RemoteSegmentState

TOPIC_ID = TopicId(uuid.UUID(int=0x1234_5678_9ABC_DEF0_0FED_CBA9_8765_4321))
EPOCHS_MAX = 6
OFFSETS_MAX = 120


def segment(
    number: int, start: int, end: int, epochs: tuple[tuple[int, int], ...] | None = None, **fields: object
) -> RemoteSegment:
    """Return a segment whose copy has started, the `number`th of partition 3."""
    known: dict[str, object] = {
        "broker_id": 1,
        "max_timestamp_ms": 1_000 + end,
        "event_timestamp_ms": 5_000,
        "size": 100,
    }
    return RemoteSegment(
        RemoteSegmentId(TOPIC_ID, "orders", 3, uuid.UUID(int=number + 1)),
        start,
        end,
        leader_epochs=epochs or ((0, start),),
        **{**known, **fields},  # type: ignore[arg-type]
    )


def update(of: RemoteSegment, state: RemoteSegmentState, **fields: object) -> SegmentUpdate:
    known: dict[str, object] = {"event_timestamp_ms": of.event_timestamp_ms + 1, "broker_id": of.broker_id}
    return SegmentUpdate(of.segment_id, state, **{**known, **fields})  # type: ignore[arg-type]


def random_segment(dice: random.Random, number: int) -> RemoteSegment:
    start = dice.randrange(OFFSETS_MAX)
    end = start + dice.randrange(40)
    epoch, offset = dice.randrange(EPOCHS_MAX), start
    epochs = [(epoch, offset)]
    while dice.random() < 0.4 and offset < end:
        epoch += dice.randrange(1, 3)
        offset = dice.randrange(offset, end + 1)
        epochs.append((epoch, offset))
    return segment(
        number,
        start,
        end,
        tuple(epochs),
        broker_id=dice.randrange(3),
        size=dice.randrange(1, 1_000),
        custom_metadata=dice.choice([None, b"", b"place 7"]),
        txn_index_empty=dice.random() < 0.5,
    )


def random_records(dice: random.Random, count: int) -> list[RemoteSegment | SegmentUpdate]:
    """Return records about a few segments, some of them in an order that no broker writes."""
    segments: list[RemoteSegment] = []
    records: list[RemoteSegment | SegmentUpdate] = []
    for number in range(count):
        if not segments or dice.random() < 0.4:
            segments.append(random_segment(dice, number))
            records.append(segments[-1])
        else:
            states = list(RemoteSegmentState)[1:]
            of = dice.choice(segments)
            custom = dice.choice([None, b"elsewhere"])
            records.append(update(of, dice.choice([states[0], *states]), custom_metadata=custom))
    return records
