"""Feature levels: the finalized ones of the cluster, the supported ones of this node, and their effect on records.

A FeatureLevelRecord finalizes a feature at a level. `metadata.version` determines which record versions may be written.
Of the other features only `eligible.leader.replicas.version` has an effect on the metadata log. `kraft.version`
belongs to the quorum: it is in control records, never in a FeatureLevelRecord.

Level zero is the same as a feature that was never set.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import NamedTuple

METADATA_VERSION = "metadata.version"
KRAFT_VERSION = "kraft.version"
TRANSACTION_VERSION = "transaction.version"
GROUP_VERSION = "group.version"
ELIGIBLE_LEADER_REPLICAS_VERSION = "eligible.leader.replicas.version"
SHARE_VERSION = "share.version"
STREAMS_VERSION = "streams.version"

# Kafka's names of the metadata.version levels. Marked ones changed what records mean; a downgrade may not go past them.
RELEASES = {
    7: "3.3-IV3",
    8: "3.4-IV0",
    9: "3.5-IV0",
    10: "3.5-IV1",
    11: "3.5-IV2",
    12: "3.6-IV0",
    13: "3.6-IV1",
    14: "3.6-IV2",
    15: "3.7-IV0",
    16: "3.7-IV1",
    17: "3.7-IV2",
    18: "3.7-IV3",
    19: "3.7-IV4",
    20: "3.8-IV0",
    21: "3.9-IV0",
    22: "4.0-IV0",
    23: "4.0-IV1",
    24: "4.0-IV2",
    25: "4.0-IV3",
    26: "4.1-IV0",
    27: "4.1-IV1",
    28: "4.2-IV0",
    29: "4.2-IV1",
    30: "4.3-IV0",
}
_CHANGED_RECORDS = frozenset({7, 8, 11, 13, 14, 15, 17, 23, 30})
MIN_METADATA_VERSION = min(RELEASES)
LATEST_METADATA_VERSION = max(RELEASES)


class VersionRange(NamedTuple):
    """The levels of a feature that a node supports."""

    low: int
    high: int

    def __contains__(self, level: object) -> bool:
        return isinstance(level, int) and self.low <= level <= self.high

    def __str__(self) -> str:
        return str(self.low) if self.low == self.high else f"{self.low}-{self.high}"


DISABLED = VersionRange(0, 0)

SUPPORTED: Mapping[str, VersionRange] = {
    METADATA_VERSION: VersionRange(MIN_METADATA_VERSION, LATEST_METADATA_VERSION),
    KRAFT_VERSION: VersionRange(0, 1),
    TRANSACTION_VERSION: VersionRange(0, 2),
    GROUP_VERSION: VersionRange(0, 1),
    ELIGIBLE_LEADER_REPLICAS_VERSION: VersionRange(0, 1),
    SHARE_VERSION: VersionRange(0, 1),
    STREAMS_VERSION: VersionRange(0, 1),
}

# The levels of a new cluster, in the order in which Kafka's format command writes them.
BOOTSTRAP_LEVELS: Mapping[str, int] = {
    METADATA_VERSION: LATEST_METADATA_VERSION,
    ELIGIBLE_LEADER_REPLICAS_VERSION: 1,
    GROUP_VERSION: 1,
    SHARE_VERSION: 1,
    STREAMS_VERSION: 1,
    TRANSACTION_VERSION: 2,
}

# feature → level → the metadata.version that it needs
REQUIRED_METADATA_VERSION: Mapping[str, Mapping[int, int]] = {ELIGIBLE_LEADER_REPLICAS_VERSION: {1: 23}}


class RecordVersions(NamedTuple):
    """The record versions that belong to a metadata.version."""

    register_broker: int
    partition: int
    has_transactions: bool  # BeginTransactionRecord and its companions
    has_delegation_tokens: bool
    has_controllers: bool  # RegisterControllerRecord
    has_directories: bool  # partitions know their log directories
    has_cordoned_directories: bool
    bumps_epoch_when_isr_shrinks: bool


@cache
def record_versions(metadata_version: int) -> RecordVersions:
    level = metadata_version
    if level >= 30:
        register_broker = 4
    elif level >= 17:
        register_broker = 3
    else:
        register_broker = 2 if level >= 8 else 1
    return RecordVersions(
        register_broker=register_broker,
        partition=2 if level >= 23 else 1 if level >= 17 else 0,
        has_transactions=level >= 13,
        has_delegation_tokens=level >= 14,
        has_controllers=level >= 15,
        has_directories=level >= 17,
        has_cordoned_directories=level >= 30,
        bumps_epoch_when_isr_shrinks=level < 12,
    )


def loses_metadata(before: int, after: int) -> bool:
    """Return True if records that level `before` allowed may lose their meaning under the lower level `after`."""
    return any(after < level <= before for level in _CHANGED_RECORDS)
