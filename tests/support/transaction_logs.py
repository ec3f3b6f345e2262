"""The logs of one side after a play about transactions, in a comparable form."""

from __future__ import annotations

from typing import Any, Protocol

from tailrace.coordinator.key_partition import partition_of
from tailrace.protocol import messages as m
from tailrace.protocol.internal_records.coordinator_records import decode_key, decode_value
from tailrace.protocol.json_form import to_dict
from tailrace.records.batch import RecordBatch
from tailrace.records.control_records import end_marker
from tailrace.records.conversion import split_any
from tailrace.records.record import iter_records

STATE = "__transaction_state"
OFFSETS = "__consumer_offsets"
INDEX_ENTRY_SIZE = 34


class Player(Protocol):
    ids: list[int]

    def ask(self, request: Any, version: int) -> Any: ...

    def number(self, producer_id: int) -> int: ...


def fetch_all(player: Player, topic: str, partition: int, isolation: int = 0) -> Any:
    """Return everything in a partition, up to 50 MB."""
    part = m.FetchRequest.FetchPartition(
        partition=partition, fetch_offset=0, partition_max_bytes=50_000_000, current_leader_epoch=-1
    )
    request = m.FetchRequest(
        replica_id=-1,
        max_wait_ms=0,
        min_bytes=0,
        max_bytes=50_000_000,
        isolation_level=isolation,
        session_id=0,
        session_epoch=-1,
        topics=[m.FetchRequest.FetchTopic(topic=topic, partitions=[part])],
    )
    return player.ask(request, 11).responses[0].partitions[0]


def log_of(player: Player, topic: str, partition: int) -> Any:
    found = fetch_all(player, topic, partition, 1)
    every = fetch_all(player, topic, partition, 0)
    aborted = sorted((player.number(one.producer_id), one.first_offset) for one in found.aborted_transactions or ())
    bounds = (found.error_code, found.high_watermark, found.last_stable_offset, found.log_start_offset)
    return [bounds, aborted, *(_batch(player, one) for one in split_any(every.records or b""))]


def _batch(player: Player, one: Any) -> Any:
    assert isinstance(one, RecordBatch)
    marker = end_marker(one) if one.is_control else None
    return (
        one.base_offset,
        player.number(one.producer_id),
        one.producer_epoch,
        one.base_sequence,
        one.is_transactional,
        marker or [record.value for record in iter_records(one)],
    )


def index_of(player: Player, data: bytes) -> bytes:
    """Return a `.txnindex` file with the producers' numbers in place of their ids."""
    assert len(data) % INDEX_ENTRY_SIZE == 0
    reported = bytearray(data)
    for position in range(0, len(data), INDEX_ENTRY_SIZE):
        producer_id = slice(position + 2, position + 10)  # after the entry's version
        number = player.number(int.from_bytes(data[producer_id], "big"))
        reported[producer_id] = number.to_bytes(8, "big")
    return bytes(reported)


def records_of(player: Player, topic: str, key: str) -> Any:
    """Return the records about a transactional id or a group, in order."""
    (known,) = player.ask(m.MetadataRequest(topics=[m.MetadataRequest.MetadataRequestTopic(name=topic)]), 9).topics
    partition = partition_of(key, len(known.partitions))
    reported: list[Any] = []
    for one in split_any(fetch_all(player, topic, partition, 0).records or b""):
        assert isinstance(one, RecordBatch)
        if topic == OFFSETS and one.producer_id not in player.ids:
            continue  # a record of another play
        if one.is_control:
            reported.append((player.number(one.producer_id), one.producer_epoch, end_marker(one)))
            continue
        for record in iter_records(one):
            assert record.key is not None
            opened = decode_key("transaction" if topic == STATE else "group", record.key)
            named = getattr(opened.message, "transactional_id", None) or getattr(opened.message, "group", None)
            if named != key:
                continue
            fields = None
            if record.value is not None:
                family = "transaction" if topic == STATE else "group"
                value = decode_value(family, opened, record.value)
                fields = _plain_value(player, to_dict(value.message, value.version), value.version)
            reported.append((player.number(one.producer_id), one.is_transactional, fields))
    return reported


def _plain_value(player: Player, fields: dict[str, Any], version: int) -> dict[str, Any]:
    plain: dict[str, Any] = {"version": version}
    for name, value in fields.items():
        if name.endswith("roducerId"):
            plain[name] = player.number(value)
        elif name.lower().endswith(("timestampms", "timestamp")):
            plain[name] = value if value < 0 else "(a time)"
        elif name == "transactionPartitions" and value is not None:
            plain[name] = sorted((one["topic"], sorted(one["partitionIds"])) for one in value)
        else:
            plain[name] = value
    return plain
