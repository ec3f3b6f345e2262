"""Records of `__transaction_state`: what is written is read again, and what Kafka wrote is understood."""

from __future__ import annotations

from random import Random

import pytest

from tailrace.coordinator.transactions.transaction import Facts, TransactionState
from tailrace.coordinator.transactions.transaction_records import (
    encoded_record,
    facts_of,
    tombstone,
    transaction_record,
)
from tailrace.model.ids import TopicPartition
from tailrace.protocol.internal_records.coordinator_records import decode_key, decode_value, encode_key, encode_value
from tailrace.protocol.messages import TransactionLogKey, TransactionLogValue

PARTITIONS = frozenset({TopicPartition("b", 2), TopicPartition("a", 1), TopicPartition("b", 0)})
ONGOING = Facts(
    TransactionState.ONGOING,
    7,
    3,
    7,
    9,
    timeout_ms=60_000,
    partitions=PARTITIONS,
    start_ms=5,
    last_update_ms=6,
    client_version=2,
)


@pytest.mark.parametrize("state", [state for state in TransactionState if state != TransactionState.EMPTY])
def test_a_written_transaction_is_read_back(state: TransactionState) -> None:
    record = transaction_record("t", ONGOING._replace(state=state), 2)
    assert record.value is not None
    key = decode_key("transaction", encode_key(record.key))
    assert isinstance(key.message, TransactionLogKey)
    value = decode_value("transaction", key, encode_value(record.value, record.version))
    assert (key.message.transactional_id, value.version) == ("t", 1)
    assert isinstance(value.message, TransactionLogValue)
    assert facts_of(value.message) == ONGOING._replace(state=state)


def test_without_the_feature_the_old_version_is_written() -> None:
    record = transaction_record("t", ONGOING, 0)
    assert record.value is not None
    value = decode_value(
        "transaction", decode_key("transaction", encode_key(record.key)), encode_value(record.value, 0)
    )
    assert (record.version, value.version) == (0, 0)
    assert isinstance(value.message, TransactionLogValue)
    expected = ONGOING._replace(previous_producer_id=-1, next_producer_id=-1, client_version=0)
    assert facts_of(value.message) == expected


def test_an_empty_transaction_has_no_list_of_partitions() -> None:
    record = transaction_record("t", Facts(TransactionState.EMPTY, 7, 0), 2)
    assert isinstance(record.value, TransactionLogValue)
    assert record.value.transaction_partitions is None
    assert facts_of(record.value).partitions == frozenset()


def test_the_bytes_equal_kafkas() -> None:
    record = transaction_record("t", ONGOING, 2)
    assert record.value is not None
    assert encode_key(record.key).hex() == "0000000174"
    assert encode_value(record.value, 1).hex() == (
        "0001" "0000000000000007" "0003" "0000ea60" "01"
        "03" "0261" "02" "00000001" "00" "0262" "03" "0000000000000002" "00"
        "0000000000000006" "0000000000000005"
        "03" "0008" "0000000000000007" "0108" "0000000000000009" "0202" "0002"
    )  # fmt: skip


@pytest.mark.parametrize("server_version", [0, 1, 2])
def test_the_fast_encoder_writes_the_same_bytes(server_version: int) -> None:
    random = Random(server_version)
    for _ in range(400):
        facts = Facts(
            random.choice(list(TransactionState)),
            random.randint(0, 2**63 - 1),
            random.randint(0, 2**15 - 1),
            random.choice([-1, 7]),
            random.choice([-1, 9]),
            timeout_ms=random.randint(1, 2**31 - 1),
            start_ms=random.choice([-1, 5]),
            last_update_ms=random.randint(0, 2**62),
            client_version=random.choice([0, 2]),
        )
        if facts.state is not TransactionState.EMPTY:
            topics = ["a", "ä" * 70, "b" * 249, *(f"t{number}" for number in range(random.choice([0, 150])))]
            chosen = random.choices(topics, k=random.choice([0, 1, 5, 400]))
            facts = facts._replace(partitions=frozenset(TopicPartition(one, random.randint(0, 200)) for one in chosen))
        name = random.choice(["t", "ü", "x" * 200])
        general = transaction_record(name, facts, server_version)
        assert general.value is not None
        quick = encoded_record(name, facts, server_version)
        assert quick == (encode_key(general.key), encode_value(general.value, general.version))


def test_a_tombstone_has_no_value() -> None:
    assert tombstone("t").value is None


def test_an_unknown_state_is_refused() -> None:
    with pytest.raises(ValueError, match="9 is not a valid"):
        facts_of(TransactionLogValue(transaction_status=9))
