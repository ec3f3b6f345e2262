"""Records that the broker writes for itself: an encoder raises UnwritableMessage, or its decoder reads the same again.

This holds for every record of `__consumer_offsets`, `__transaction_state`, `__share_group_state` and
`__cluster_metadata`, for those written by hand as for those written from schemas, whatever a client puts into them.
"""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tailrace.coordinator.offsets.offset_records import key_names
from tailrace.coordinator.transactions.transaction import Facts, TransactionState
from tailrace.coordinator.transactions.transaction_records import encoded_record, facts_of, transaction_record
from tailrace.model.ids import TopicPartition
from tailrace.protocol.codegen.schema import index
from tailrace.protocol.errors import UnwritableMessage
from tailrace.protocol.internal_records.coordinator_records import (
    FAMILIES,
    decode_key,
    decode_value,
    encode_key,
    encode_value,
)
from tailrace.protocol.internal_records.metadata_frames import decode_frame, encode_frame
from tailrace.protocol.message import Message
from tailrace.protocol.messages import OffsetCommitKey, TransactionLogValue
from tailrace.protocol.registry import record_class
from tests.unit.protocol.random_messages import extreme_messages, random_message

NUMBERS = {family: sorted(index()["records"][f"{family}/key"], key=int) for family in FAMILIES.values()}
COORDINATOR_RECORDS = [(family, int(number)) for family, numbers in NUMBERS.items() for number in numbers]
METADATA_RECORDS = sorted(index()["records"]["metadata/metadata"].values())

CHARACTERS = st.characters(exclude_categories=[]) | st.sampled_from("€𝄞\ud800\udfff\0")
LENGTHS = st.sampled_from([10922, 10923, 32767, 32768, 70000])
NAMES = st.text(CHARACTERS, max_size=20) | st.builds(str.__mul__, st.sampled_from("x€"), LENGTHS)
NEAR_INT16 = st.sampled_from([-(2**15) - 1, -(2**15), -1, 0, 2**15 - 1, 2**15])
NEAR_INT32 = st.sampled_from([-(2**31) - 1, -(2**31), -1, 0, 1, 2**31 - 1, 2**31])
NEAR_INT64 = st.sampled_from([-(2**63) - 1, -(2**63), -1, 0, 1, 2**63 - 1, 2**63])
FACTS = st.builds(
    Facts,
    st.sampled_from(list(TransactionState)),
    NEAR_INT64,
    producer_epoch=NEAR_INT16,
    previous_producer_id=NEAR_INT64,
    next_producer_id=NEAR_INT64,
    timeout_ms=NEAR_INT32,
    partitions=st.frozensets(st.builds(TopicPartition, NAMES, NEAR_INT32), max_size=3),
    start_ms=NEAR_INT64,
    last_update_ms=NEAR_INT64,
    client_version=NEAR_INT16,
)
thorough = settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))


def check_coordinator_record(family: str, key: Message, value: Message, version: int, field: str) -> bool:
    """Check one record; return False if its encoder refused it."""
    try:
        written_key, written_value = encode_key(key), encode_value(value, version)
    except UnwritableMessage:
        return False
    read_key = decode_key(family, written_key)
    assert read_key.message == key, field
    assert decode_value(family, read_key, written_value) == (value.SCHEMA.name, version, value), field
    return True


@pytest.mark.parametrize(("family", "number"), COORDINATOR_RECORDS)
def test_a_coordinator_record_reads_as_written_or_is_refused(family: str, number: int) -> None:
    key_class, value_class = record_class(family, "key", number), record_class(family, "value", number)
    assert key_class is not None
    assert value_class is not None
    key_name, value_name = key_class.SCHEMA.name, value_class.SCHEMA.name
    outcomes = set()
    for version in value_class.SCHEMA.versions:
        key, value = random_message(key_name, 0, 1), random_message(value_name, version, 1)
        assert check_coordinator_record(family, key, value, version, "random")
        for field, extreme in extreme_messages(key_name, 0, 2):
            outcomes.add(check_coordinator_record(family, extreme, value, version, field))
        for field, extreme in extreme_messages(value_name, version, 3):
            outcomes.add(check_coordinator_record(family, key, extreme, version, field))
    assert outcomes == {True, False}, "the extremes are extreme"


@pytest.mark.parametrize("name", METADATA_RECORDS)
def test_a_metadata_record_reads_as_written_or_is_refused(name: str) -> None:
    for version in random_message(name, 0, 0).SCHEMA.versions:
        for field, message in extreme_messages(name, version, 4):
            try:
                frame = encode_frame(message, version)
            except UnwritableMessage:
                continue
            assert decode_frame(frame) == (name, version, message), field


@thorough
@given(NAMES, FACTS, st.sampled_from([0, 1, 2]))
def test_a_transaction_reads_as_written_or_is_refused(transactional_id: str, facts: Facts, version: int) -> None:
    general = transaction_record(transactional_id, facts, version)
    assert general.value is not None
    try:
        key, value = encoded_record(transactional_id, facts, version)
    except UnwritableMessage:
        with pytest.raises(UnwritableMessage):
            _ = encode_key(general.key) + encode_value(general.value, general.version)
        return
    assert value is not None
    assert (key, value) == (encode_key(general.key), encode_value(general.value, general.version))
    read_key = decode_key("transaction", key)
    read = decode_value("transaction", read_key, value).message
    assert isinstance(read, TransactionLogValue)
    kept = facts._replace(
        partitions=frozenset() if facts.state is TransactionState.EMPTY else facts.partitions,
        last_producer_epoch=-1,
        **({"previous_producer_id": -1, "next_producer_id": -1, "client_version": 0} if version == 0 else {}),
    )
    assert facts_of(read) == kept


@thorough
@given(NAMES, NAMES)
def test_a_key_of_a_committed_offset_reads_as_written_or_is_refused(group: str, topic: str) -> None:
    try:
        names = key_names(group, topic)
    except UnwritableMessage:
        return
    assert decode_key("group", names + b"\0\0\0\7").message == OffsetCommitKey(group=group, topic=topic, partition=7)
