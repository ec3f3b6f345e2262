"""PlainAnswers: responses as plain values, with words for values that each broker chooses itself.

Ids of topics, sessions, members and producers become names; append times become words. Only the presence of an error
message is compared, and a message where Kafka has none does not count as a difference. In Fetch the order of topics
and partitions counts.
"""

from __future__ import annotations

import hashlib
import json
import struct
from typing import Any, Final

from tailrace.protocol.json_form import base64_uuid_text, to_dict
from tailrace.protocol.messages import FetchResponse, ListOffsetsResponse
from tailrace.records.batch import HEADER_SIZE, LOG_OVERHEAD, TIMESTAMP_TYPE_BIT, CorruptBatch, RecordBatch
from tailrace.records.record import iter_records

_DROPPED: Final = frozenset({"throttleTimeMs"})
_NO_TOPIC: Final = base64_uuid_text(bytes(16))


class PlainAnswers:
    """The names of one broker's ids."""

    def __init__(self) -> None:
        self.topics: dict[str, str] = {}  # names by id
        self.sessions: dict[int, str] = {0: "none"}
        self.producers: dict[int, str] = {}
        self.members: dict[str, str] = {}
        self.append_time_topics: frozenset[str] = frozenset()
        self.marker_times = range(0)  # times that no client has sent

    def plain(self, message: Any, version: int) -> Any:
        if isinstance(message, FetchResponse):
            return self._fetch(message, version)
        form = self._value(to_dict(message, version))
        if isinstance(message, ListOffsetsResponse):
            for topic in form["topics"]:
                for one in topic["partitions"]:
                    one["timestamp"] = self._found_time(topic["name"], one["timestamp"])
        return form

    def _found_time(self, topic: str, timestamp: int) -> Any:
        """Return the timestamp of a record, unless its broker has set it: append times, and times of markers."""
        is_own = timestamp > 0 and topic in self.append_time_topics
        return "(time)" if is_own or timestamp in self.marker_times else timestamp

    def _fetch(self, message: FetchResponse, version: int) -> Any:
        form = to_dict(message, version)
        for topic, shown in zip(message.responses, form.get("responses", ()), strict=True):
            if "topicId" in shown:
                shown["topicId"] = self._topic(shown["topicId"])
            for one, reported in zip(topic.partitions, shown["partitions"], strict=True):
                reported.pop("recordsSizeInBytes", None)
                reported["records"] = None if one.records is None else self.batches(bytes(one.records))
                for aborted in reported.get("abortedTransactions") or ():
                    aborted["producerId"] = self._producer(aborted["producerId"])
        if "sessionId" in form:
            form["sessionId"] = self.sessions.get(form["sessionId"], form["sessionId"])
        form.pop("throttleTimeMs", None)
        return form

    def batches(self, data: bytes) -> list[Any]:
        """Return one row per batch; bytes that are not a whole batch are shown as they are."""
        rows: list[Any] = []
        position = 0
        while len(data) - position >= HEADER_SIZE:
            (length,) = struct.unpack_from(">i", data, position + 8)
            if length + LOG_OVERHEAD > len(data) - position:
                break
            rows.append(self._batch(RecordBatch(memoryview(data)[position : position + length + LOG_OVERHEAD])))
            position += length + LOG_OVERHEAD
        if position < len(data):
            rows.append(f"(start of a batch, {len(data) - position} bytes)")
        return rows

    def _batch(self, batch: RecordBatch) -> Any:
        is_append_time = bool(batch.attributes & TIMESTAMP_TYPE_BIT)
        has_own_time = is_append_time or batch.is_control
        has_own_bytes = has_own_time or batch.producer_id in self.producers
        return {
            "offset": batch.base_offset,
            "size": batch.size,
            "epoch": batch.leader_epoch,
            "crc": "(own)" if has_own_bytes else batch.crc,
            "attributes": batch.attributes,
            "delta": batch.last_offset_delta,
            "first": "(time)" if batch.is_control else batch.base_timestamp,
            "max": "(time)" if has_own_time else batch.max_timestamp,
            "producer": (self._producer(batch.producer_id), batch.producer_epoch, batch.base_sequence),
            "count": batch.record_count,
            "records": _records(batch),
        }

    def _producer(self, producer_id: int) -> Any:
        return self.producers.get(producer_id, producer_id)

    def _topic(self, topic_id: str) -> str:
        return topic_id if topic_id == _NO_TOPIC else self.topics.get(topic_id, "(unknown)")

    def _value(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {name: self._field(name, one) for name, one in value.items() if name not in _DROPPED}
        if isinstance(value, list):
            rows = [self._value(one) for one in value]
            return sorted(rows, key=json.dumps) if rows and isinstance(rows[0], dict) else rows
        return self.members.get(value, value) if isinstance(value, str) else value

    def _field(self, name: str, value: Any) -> Any:
        if name in ("errorMessage", "batchIndexErrorMessage"):
            return "(text)" if value else None
        if name == "logAppendTimeMs":
            return "(time)" if value > 0 else value
        if name == "topicId":
            return self._topic(value)
        if name == "producerId":
            return self._producer(value)
        return self._value(value)


def _records(batch: RecordBatch) -> Any:
    """Return a digest of the bytes, or of the records where compression may give other bytes."""
    payload = bytes(batch.view[HEADER_SIZE:])
    if batch.attributes & 7 == 0:
        return hashlib.sha256(payload).hexdigest()[:12]
    try:
        rows = [
            (
                one.offset,
                one.timestamp if not batch.attributes & TIMESTAMP_TYPE_BIT else 0,
                one.key,
                one.value,
                one.headers,
            )
            for one in iter_records(batch)
        ]
    except CorruptBatch:
        return hashlib.sha256(payload).hexdigest()[:12]
    return hashlib.sha256(repr(rows).encode()).hexdigest()[:12]


def differences(path: str, kafka: Any, ours: Any) -> list[str]:
    """Return one line per field in which two plain responses differ."""
    if isinstance(kafka, dict) and isinstance(ours, dict):
        found = []
        for name in {**kafka, **ours}:
            found += differences(f"{path}.{name}", kafka.get(name, "(none)"), ours.get(name, "(none)"))
        return found
    if isinstance(kafka, list) and isinstance(ours, list) and len(kafka) == len(ours):
        return [
            line
            for number, pair in enumerate(zip(kafka, ours, strict=True))
            for line in differences(f"{path}[{number}]", *pair)
        ]
    if kafka == ours or (path.endswith("rrorMessage") and kafka is None):
        return []
    return [f"{path}: Kafka {kafka!r}, Tailrace {ours!r}"]
