"""Values of the fields of expensive requests: existing names, unknown ones, long ones, invalid ones."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from tailrace.protocol.api_keys import ApiKey
from tailrace.protocol.codegen.schema import Field
from tests.fuzz.bytes_mutator import INVALID_MARK

TOPIC_NAME_MAX: Final = 249
STRING_MAX: Final = 32_000


class Kind(StrEnum):
    """The kind of the values in a request."""

    MINIMAL = "minimal values"
    SAME = "one existing name"
    EXISTING = "existing names"
    UNKNOWN = "unknown names"
    LONG = "names of 249 bytes"
    LONGEST = "names of 32,000 bytes"
    INVALID = "invalid UTF-8"
    NULL = "nulls"


@dataclass(frozen=True, slots=True)
class Names:
    """The names that exist at one broker."""

    node_id: int
    topics: list[str]
    topic_ids: list[bytes]
    groups: dict[str, list[str]]  # by kind: classic, consumer, share, streams
    transactions: list[str]
    log_dir: str
    batch: bytes  # a valid record batch

    def resolve(self, value: Any) -> Any:
        """Return a recipe's value; a tuple ("topic_id", n) stands for an id that differs from broker to broker."""
        if isinstance(value, tuple) and value[0] == "topic_id":
            return self.topic_ids[value[1] % len(self.topic_ids)]
        if isinstance(value, list):
            return [self.resolve(one) for one in value]
        return value


_GROUP_KIND: Final = {
    ApiKey.CONSUMER_GROUP_HEARTBEAT: "consumer",
    ApiKey.CONSUMER_GROUP_DESCRIBE: "consumer",
    ApiKey.STREAMS_GROUP_HEARTBEAT: "streams",
    ApiKey.STREAMS_GROUP_DESCRIBE: "streams",
    **{key: "share" for key in ApiKey if "SHARE" in key.name},
}

# Texts that the field must have to get past the first check.
_TEXTS: Final = {
    "protocol_type": "consumer",
    "resource_pattern": "literal",
    "principal": "User:somebody",
    "principal_filter": "User:somebody",
    "host": "*",
    "host_filter": "*",
    "entity_type": "user",
    "key": "producer_byte_rate",
    "value": "1000",
    "feature": "metadata.version",
    "mechanism": "PLAIN",
    "client_software_name": "costs",
    "client_software_version": "1",
    "process_id": "process",
}
_CONFIGS: Final = ("retention.ms", "segment.bytes", "retention.bytes", "max.message.bytes", "segment.ms")
_STATES: Final = {"states_filter": "Empty", "types_filter": "classic", "state_filters": "Ongoing"}

_NUMBERS: Final = {
    "acks": 1,
    "timeout_ms": 1000,
    "max_bytes": 50_000_000,
    "partition_max_bytes": 1_000_000,
    "max_wait_ms": 0,
    "min_bytes": 0,
    "max_records": 500,
    "batch_size": 500,
    "session_timeout_ms": 45_000,
    "rebalance_timeout_ms": 45_000,
    "transaction_timeout_ms": 60_000,
    "retention_time_ms": -1,
    "num_partitions": 1,
    "replication_factor": 1,
    "count": 3,
    "replica_id": -1,
    "resource_type": 2,
    "resource_types": 2,
    "resource_type_filter": 2,
    "resource_pattern_type": 3,
    "pattern_type_filter": 3,
    "operation": 3,
    "permission_type": 3,
    "mechanism": 1,
    "iterations": 4096,
    "producer_id": 1,
    "max_version_level": 1,
    "timestamp": -1,
    "acknowledge_types": 1,
    "generation_id": -1,
    "generation_id_or_member_epoch": -1,
    "max_num_offsets": 1,
    "delivery_state": 2,
    "delivery_count": 1,
    "match_type": 0,
    "session_epoch": 0,
    "endpoint_type": 1,
}


def string_value(names: Names, api: ApiKey, field: Field, kind: Kind, index: int) -> str:
    """Return the text of a field in the element at `index`."""
    if kind in (Kind.MINIMAL, Kind.NULL):
        return ""
    if kind is Kind.INVALID:
        return INVALID_MARK
    if kind in (Kind.SAME, Kind.EXISTING):
        return _existing(names, api, field, index if kind is Kind.EXISTING else 0)
    if field.attribute in _TEXTS and not field.is_array:
        return _TEXTS[field.attribute]
    text = f"u{index:x}"
    if kind is Kind.UNKNOWN:
        return text
    return text.ljust(TOPIC_NAME_MAX if kind is Kind.LONG else STRING_MAX, "x")


def _existing(names: Names, api: ApiKey, field: Field, index: int) -> str:
    match field.entity_type:
        case "topicName":
            return names.topics[index % len(names.topics)]
        case "groupId":
            groups = names.groups[_GROUP_KIND.get(api, "classic")]
            return groups[index % len(groups)]
        case "transactionalId":
            return names.transactions[index % len(names.transactions)]
    match field.attribute:
        case "resource_name" | "resource_name_filter" | "topic_name" | "match":
            return names.topics[index % len(names.topics)]
        case "group_id":
            groups = names.groups["share"]
            return groups[index % len(groups)]
        case "coordinator_keys":
            return names.groups["classic"][index % len(names.groups["classic"])]
        case "path":
            return names.log_dir
        case "name" if "CONFIGS" in api.name or "TOPICS" in api.name:
            return _CONFIGS[index % len(_CONFIGS)]
        case "configuration_keys":
            return _CONFIGS[index % len(_CONFIGS)]
    return _TEXTS.get(field.attribute) or _STATES.get(field.attribute) or f"e{index:x}"


def uuid_value(names: Names, kind: Kind, index: int) -> bytes:
    """Return the topic id of the element at `index`."""
    match kind:
        case Kind.SAME:
            return names.topic_ids[0]
        case Kind.EXISTING:
            return names.topic_ids[index % len(names.topic_ids)]
        case Kind.UNKNOWN | Kind.LONG | Kind.LONGEST:
            return (index + 1).to_bytes(16, "big")
        case _:
            return bytes(16)


def number_value(names: Names, field: Field, kind: Kind, index: int) -> int:
    """Return the number of a field; partitions and other numbers without a fixed value count up in distinct kinds."""
    if field.entity_type == "brokerId":
        return names.node_id if field.is_array else _NUMBERS.get(field.attribute, field.default or -1)
    if field.attribute in _NUMBERS:
        return _NUMBERS[field.attribute]
    if field.default not in (0, ...):
        return int(field.default)
    distinct = kind in (Kind.UNKNOWN, Kind.LONG, Kind.LONGEST)
    limit = {"int8": 127, "int16": 32_767}.get(field.element, 2**31 - 1)
    return index % limit if distinct and (field.is_array or "partition" in field.attribute) else 0
