"""CommitReplay: the committed offsets of one batch, taken into the state as they lie there.

The records of a batch are mostly one commit's: of one group and topic, whose names are read once.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct

from tailrace.coordinator.groups.group import CommittedOffset
from tailrace.coordinator.offsets.committed_offsets import CommittedOffsets
from tailrace.coordinator.offsets.offset_bytes import read_commit

_PARTITION = Struct(">i")
_PLAIN_VALUE = Struct(">hqibq")  # version, offset, leader epoch, size of the metadata, time
_PLAIN_VERSION = 4
_NO_METADATA = 1
_PLAIN_SIZES = (_PLAIN_VALUE.size + 1, _PLAIN_VALUE.size + 19)  # without a topic id, and with one


class CommitReplay:
    def __init__(self, offsets: CommittedOffsets, ensure_group: Callable[[str], object]) -> None:
        self._offsets = offsets
        self._ensure_group = ensure_group
        self._key_start: bytes | None = None  # of the record before: all but the partition
        self._known: dict[int, CommittedOffset] = {}  # what that group has committed of that topic

    def take(self, key: bytes, value: bytes, record_offset: int) -> bool:
        """False, with nothing done, for what is no committed offset, or one of an old version."""
        if key[:-4] == self._key_start and len(value) in _PLAIN_SIZES:
            version, offset, leader_epoch, size, timestamp_ms = _PLAIN_VALUE.unpack_from(value)
            if version == _PLAIN_VERSION and size == _NO_METADATA:
                self._known[_PARTITION.unpack_from(key, len(key) - 4)[0]] = CommittedOffset(
                    offset, leader_epoch, "", timestamp_ms, -1, record_offset
                )
                return True
        found = read_commit(key, value, record_offset)
        if found is None:
            return False
        self._ensure_group(found.group_id)
        self._known = self._offsets.of_topic(found.group_id, found.topic)
        self._known[found.partition] = found.committed
        self._key_start = key[:-4]
        return True
