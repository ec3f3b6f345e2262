"""Keys and values as text: plain ones by an encoding, those of internal topics as JSON.

The JSON is that of Apache Kafka's DumpLogSegments for the coordinators' topics and the cluster's metadata. If a record
cannot be decoded, the error is shown in place of its key, and the dump continues.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Callable
from typing import Any, TypeAlias

from tailrace.log.disk import file_names
from tailrace.protocol.errors import ProtocolError, UnknownRecordType
from tailrace.protocol.internal_records.coordinator_records import (
    FAMILIES,
    decode_key,
    decode_value,
    key_to_dict,
    value_to_dict,
)
from tailrace.protocol.internal_records.metadata_frames import decode_frame, frame_to_dict
from tailrace.protocol.json_form import to_dict
from tailrace.protocol.registry import message_class
from tailrace.records.control_records import ControlType, control_type, parse_marker
from tailrace.records.record import Record
from tailrace.records.utf8 import decode_utf8

# Returns the fields to add to a record's row: key and payload, if it has them.
Decoder: TypeAlias = Callable[[Record], dict[str, Any]]

REMOTE_LOG_METADATA_TOPIC = "__remote_log_metadata"
_DELETE = "<DELETE>"
_CONTROL_MESSAGES = {
    ControlType.LEADER_CHANGE: ("LeaderChange", "LeaderChangeMessage"),
    ControlType.SNAPSHOT_HEADER: ("SnapshotHeader", "SnapshotHeaderRecord"),
    ControlType.SNAPSHOT_FOOTER: ("SnapshotFooter", "SnapshotFooterRecord"),
    ControlType.KRAFT_VERSION: ("KRaftVersion", "KRaftVersionRecord"),
    ControlType.KRAFT_VOTERS: ("KRaftVoters", "VotersRecord"),
}


def decoder_for(topic: str | None, encoding: str = "utf8") -> Decoder:
    """Return the decoder for the records of a topic."""
    if topic in FAMILIES:
        return _coordinator_decoder(FAMILIES[topic])
    if topic in (file_names.CLUSTER_METADATA_TOPIC, REMOTE_LOG_METADATA_TOPIC):
        family = "metadata" if topic == file_names.CLUSTER_METADATA_TOPIC else "remote_log"
        return lambda record: {"payload": _metadata_text(record, family)}
    return _plain_decoder(encoding)


def _plain_decoder(encoding: str) -> Decoder:
    text_of: Callable[[bytes], str] = {
        "utf8": decode_utf8,
        "base64": lambda data: b64encode(data).decode(),
        "hex": bytes.hex,
    }[encoding]

    def decode(record: Record) -> dict[str, Any]:
        fields = {}
        if record.key is not None:
            fields["key"] = text_of(record.key)
        if record.value is not None:
            fields["payload"] = text_of(record.value)
        return fields

    return decode


def _coordinator_decoder(family: str) -> Decoder:
    def decode(record: Record) -> dict[str, Any]:
        if record.key is None:
            return {"key": f"Error at offset {record.offset}, skipping. The record has no key"}
        try:
            key = decode_key(family, record.key)
            if record.value is None:
                return {"key": key_to_dict(key), "payload": _DELETE}
            return {"key": key_to_dict(key), "payload": value_to_dict(decode_value(family, key, record.value))}
        except UnknownRecordType as error:
            return {"key": f"Unknown record type at offset {record.offset}, skipping. {error}"}
        except ProtocolError as error:
            return {"key": f"Error at offset {record.offset}, skipping. {error}"}

    return decode


def _metadata_text(record: Record, family: str) -> Any:
    try:
        return frame_to_dict(decode_frame(record.value or b"", family))
    except ProtocolError as error:
        return f"Error at {record.offset}, skipping. {error}"


def control_fields(record: Record) -> dict[str, Any]:
    """Return the content of a control record as fields of its row. Raise CorruptBatch if it is invalid."""
    kind = control_type(record.key)
    if kind in (ControlType.ABORT, ControlType.COMMIT):
        return {"endTxnMarker": kind.name, "coordinatorEpoch": parse_marker(record).coordinator_epoch}
    if kind in _CONTROL_MESSAGES:
        name, message_name = _CONTROL_MESSAGES[kind]
        try:
            return {name: to_dict(message_class(message_name).decode(record.value or b"", 0), 0)}
        except ProtocolError as error:
            return {name: f"cannot be decoded: {error}"}
    code = int.from_bytes((record.key or b"")[2:4], "big", signed=True)
    return {"controlType": f"{kind.name}({code})"}


def compact_json(value: Any) -> str:
    """Return JSON as Kafka's tools print it: without spaces, text unescaped."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
