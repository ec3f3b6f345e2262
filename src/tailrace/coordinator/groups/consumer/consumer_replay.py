"""Replay of the records of consumer groups."""

from __future__ import annotations

from typing import Any, Final

from tailrace.coordinator.groups.consumer.consumer_group import ConsumerGroup, ResolvedPattern
from tailrace.coordinator.groups.consumer.consumer_records import CONSUMER_RECORDS
from tailrace.coordinator.groups.epoch.epoch_replay import EpochReplay
from tailrace.protocol.messages import ConsumerGroupPartitionMetadataKey, ConsumerGroupRegularExpressionKey


def _replay_own(group: ConsumerGroup, key: Any, value: Any) -> None:
    if isinstance(key, ConsumerGroupPartitionMetadataKey):
        group.has_partition_metadata = value is not None
    elif value is None:
        group.patterns.pop(key.regular_expression, None)
    else:
        resolved = ResolvedPattern(frozenset(value.topics), value.version, value.timestamp)
        group.patterns[key.regular_expression] = resolved


CONSUMER_REPLAY: Final = EpochReplay(
    ConsumerGroup,
    CONSUMER_RECORDS,
    (ConsumerGroupPartitionMetadataKey, ConsumerGroupRegularExpressionKey),
    _replay_own,
)
