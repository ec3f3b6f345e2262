"""ShareHeartbeat: a ShareGroupHeartbeat request, and its result."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from tailrace.protocol.messages import ShareGroupHeartbeatResponse

StartOffsets: TypeAlias = dict[bytes, dict[int, int]]  # topic id → partition → start offset


class ShareHeartbeat(NamedTuple):
    """A ShareGroupHeartbeat request, decoded. None means that a field has not changed."""

    group_id: str
    member_id: str
    member_epoch: int
    client_id: str
    client_host: str
    rack_id: str | None = None
    topic_names: frozenset[str] | None = None


class Initialization(NamedTuple):
    """Partitions whose state the share coordinator must initialize."""

    group_id: str
    state_epoch: int
    offsets: StartOffsets

    @property
    def partitions(self) -> dict[bytes, frozenset[int]]:
        return {topic: frozenset(offsets) for topic, offsets in self.offsets.items()}


class ShareHeartbeatResult(NamedTuple):
    response: ShareGroupHeartbeatResponse
    to_initialize: Initialization | None = None
