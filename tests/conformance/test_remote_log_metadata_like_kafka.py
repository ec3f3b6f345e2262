"""The metadata of remote segments, compared with Kafka's own classes: bytes, partitions, cache, lineage."""

from __future__ import annotations

import base64
import random
import uuid

import pytest

from tailrace.model.ids import TopicId
from tailrace.tiers.lineage import epochs_with_records, is_within_epochs
from tailrace.tiers.metadata.metadata_partition import metadata_partition
from tailrace.tiers.metadata.segment_cache import SegmentCache, UnknownSegment
from tailrace.tiers.metadata.segment_records import (
    SegmentUpdate,
    decode_record,
    encode_segment,
    encode_update,
)
from tailrace.tiers.remote_segment import RemoteSegment, RemoteSegmentState
from tests.support.log_oracle import LogOracle
from tests.support.oracle_types import OracleError
from tests.support.remote_segments import EPOCHS_MAX, OFFSETS_MAX, random_records, random_segment

pytestmark = pytest.mark.kafka


def _encoded(record: RemoteSegment | SegmentUpdate) -> bytes:
    return encode_segment(record) if isinstance(record, RemoteSegment) else encode_update(record)


def _as_text(data: bytes) -> str:
    return base64.b64encode(data).decode()


def test_records_have_kafkas_bytes(log_oracle: LogOracle) -> None:
    for record in random_records(random.Random(1), 200):
        data = _encoded(record)
        seen = log_oracle.call("remote_record", value=_as_text(data))
        assert base64.b64decode(seen["bytes"]) == data
        assert decode_record(data) == record
        assert record.segment_id.text in seen["text"]


def test_each_partition_has_kafkas_partition_of_the_metadata_topic(log_oracle: LogOracle) -> None:
    dice = random.Random(2)
    for _ in range(300):
        topic_id = TopicId(uuid.UUID(int=dice.getrandbits(128)))
        partition, partitions = dice.randrange(200), dice.choice([1, 2, 50, 113])
        expected = log_oracle.call(
            "remote_partition", topic_id=str(topic_id), partition=partition, partitions=partitions
        )
        assert metadata_partition(topic_id, partition, partitions) == expected


@pytest.mark.parametrize("seed", range(12))
def test_the_cache_has_the_segments_of_kafkas_cache(log_oracle: LogOracle, seed: int) -> None:
    dice = random.Random(seed)
    is_initialized = dice.random() < 0.7
    cache = SegmentCache()
    log_oracle.call("remote_cache_open", initialized=is_initialized)
    epochs, offsets = list(range(EPOCHS_MAX + 12)), list(range(0, OFFSETS_MAX + 45, 5))
    for record in random_records(dice, 60):
        try:
            log_oracle.call("remote_cache_apply", value=_as_text(_encoded(record)))
            theirs = None
        except OracleError as error:
            theirs = error.kind
        ours = None
        try:
            if isinstance(record, RemoteSegment):
                cache.add(record)
            else:
                cache.update(record, is_initialized=is_initialized)
        except UnknownSegment:
            ours = "RemoteResourceNotFoundException"
        assert (theirs or "").endswith(ours or "")
        assert (ours is None) == (theirs is None)
        assert _view(cache, epochs, offsets) == log_oracle.call("remote_cache_view", epochs=epochs, offsets=offsets)


def _view(cache: SegmentCache, epochs: list[int], offsets: list[int]) -> dict[str, object]:
    return {
        "all": sorted(_described(one) for one in cache.all()),
        "epochs": {
            str(epoch): {
                "segments": sorted(_described(one) for one in cache.in_epoch(epoch)),
                "highest": cache.highest_offset(epoch),
                "lookups": [_id_of(cache.find(epoch, offset)) for offset in offsets],
                "transactions": [_id_of(cache.next_with_transactions(epoch, offset)) for offset in offsets],
            }
            for epoch in epochs
        },
    }


def _described(one: RemoteSegment) -> str:
    custom = -1 if one.custom_metadata is None else len(one.custom_metadata)
    words = (one.start_offset, one.end_offset, one.segment_id.text, one.state.name, one.broker_id)
    return " ".join(str(word) for word in (*words, one.event_timestamp_ms, custom))


def _id_of(one: RemoteSegment | None) -> str | None:
    return None if one is None else one.segment_id.text


def test_segments_agree_with_a_lineage_as_at_kafka(log_oracle: LogOracle) -> None:
    dice = random.Random(3)
    agreed = 0
    for number in range(1_500):
        segment = random_segment(dice, number)
        if dice.random() < 0.7:
            epochs = dict(segment.leader_epochs)
            for _ in range(dice.randrange(3)):
                epoch = dice.randrange(EPOCHS_MAX + 6)
                epochs.setdefault(epoch, dice.randrange(OFFSETS_MAX))
        else:
            epochs = {dice.randrange(EPOCHS_MAX): dice.randrange(OFFSETS_MAX) for _ in range(3)}
        # In a lineage, offsets never decrease.
        offsets = sorted(epochs.values())
        lineage = list(zip(sorted(epochs), offsets, strict=True))
        log_end = segment.end_offset + dice.choice([0, 1, 50])
        expected = log_oracle.call(
            "remote_within_epochs",
            value=_as_text(encode_segment(segment)),
            epochs={str(epoch): str(offset) for epoch, offset in lineage},
            log_end=log_end,
        )
        assert is_within_epochs(segment, log_end, epochs_with_records(lineage)) == expected, (segment, lineage)
        agreed += expected
    assert 100 < agreed < 1_400
    assert RemoteSegmentState.COPY_SEGMENT_STARTED == 0
