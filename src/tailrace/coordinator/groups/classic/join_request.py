"""JoinRequest: a JoinGroup request, decoded."""

from __future__ import annotations

from typing import NamedTuple

from tailrace.coordinator.groups.classic.classic_member import Protocols
from tailrace.coordinator.groups.group import IsVisible, all_visible


class JoinRequest(NamedTuple):
    """A JoinGroup request, decoded."""

    group_id: str
    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocol_type: str
    protocols: Protocols
    reason: str
    version: int
    is_visible: IsVisible = all_visible
