"""ClassicMember: one member of a classic group, and the responses that it waits for.

A member waits in JoinGroup until all members have joined, and in SyncGroup until the leader has sent the assignment.
Its session cannot expire while it waits, unless the member is new and has not received its id yet.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from tailrace.protocol.messages import DescribeGroupsResponse, JoinGroupResponse, SyncGroupResponse

JoinAnswer: TypeAlias = Callable[[JoinGroupResponse, int], None]  # (response, now_ms)
SyncAnswer: TypeAlias = Callable[[SyncGroupResponse, int], None]
Protocols: TypeAlias = Sequence[tuple[str, bytes]]  # (name, metadata), the preferred protocol first


class ClassicMember:
    __slots__ = (
        "assignment",
        "awaiting_join",
        "awaiting_sync",
        "client_host",
        "client_id",
        "instance_id",
        "is_new",
        "member_id",
        "protocols",
        "rebalance_timeout_ms",
        "session_timeout_ms",
    )

    def __init__(
        self,
        member_id: str,
        *,
        instance_id: str | None,
        client_id: str,
        client_host: str,
        rebalance_timeout_ms: int,
        session_timeout_ms: int,
        protocols: Protocols,
        assignment: bytes = b"",
    ) -> None:
        self.member_id = member_id
        self.instance_id = instance_id
        self.client_id = client_id
        self.client_host = client_host
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.session_timeout_ms = session_timeout_ms
        self.protocols = tuple(protocols)
        self.assignment = assignment
        self.awaiting_join: JoinAnswer | None = None
        self.awaiting_sync: SyncAnswer | None = None
        self.is_new = False

    def replaced_by(self, member_id: str) -> ClassicMember:
        """Return this static member with the new id that it has after a restart."""
        return ClassicMember(
            member_id,
            instance_id=self.instance_id,
            client_id=self.client_id,
            client_host=self.client_host,
            rebalance_timeout_ms=self.rebalance_timeout_ms,
            session_timeout_ms=self.session_timeout_ms,
            protocols=self.protocols,
            assignment=self.assignment,
        )

    def update(self, protocols: Protocols, rebalance_timeout_ms: int, session_timeout_ms: int) -> None:
        """Store the fields of another JoinGroup."""
        self.protocols = tuple(protocols)
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.session_timeout_ms = session_timeout_ms

    def assign(self, assignment: bytes) -> None:
        self.assignment = assignment

    def wait_to_join(self, answer: JoinAnswer | None) -> None:
        """Note the JoinGroup that the member waits in, if any."""
        self.awaiting_join = answer

    def wait_to_sync(self, answer: SyncAnswer) -> None:
        """Note the SyncGroup that the member waits in."""
        self.awaiting_sync = answer

    def begin_first_join(self) -> None:
        """Note that the member is new: it receives its id with the response of its first JoinGroup."""
        self.is_new = True

    def end_first_join(self) -> None:
        self.is_new = False

    @property
    def is_static(self) -> bool:
        return self.instance_id is not None

    @property
    def is_alive_while_waiting(self) -> bool:
        return not self.is_new and (self.awaiting_join is not None or self.awaiting_sync is not None)

    def metadata(self, protocol: str | None) -> bytes:
        """Return the member's metadata for a protocol that it supports."""
        for name, metadata in self.protocols:
            if name == protocol:
                return metadata
        raise AssertionError(f"{self.member_id} does not support {protocol}")

    def vote(self, candidates: frozenset[str]) -> str:
        """Return the candidate that the member prefers."""
        for name, _ in self.protocols:
            if name in candidates:
                return name
        raise AssertionError(f"{self.member_id} supports none of {sorted(candidates)}")

    def answer_join(self, response: JoinGroupResponse, now_ms: int) -> bool:
        """Answer the JoinGroup that the member waits in. Return False if there is none.

        Call `ClassicGroup.answer_join` instead, which also counts the waiting members.
        """
        answer, self.awaiting_join = self.awaiting_join, None
        if answer is None:
            return False
        answer(response, now_ms)
        return True

    def answer_sync(self, response: SyncGroupResponse, now_ms: int) -> bool:
        answer, self.awaiting_sync = self.awaiting_sync, None
        if answer is None:
            return False
        answer(response, now_ms)
        return True

    def described(self, protocol: str | None) -> DescribeGroupsResponse.DescribedGroupMember:
        """Return the member for DescribeGroups. Its metadata is empty while the group has no protocol."""
        return DescribeGroupsResponse.DescribedGroupMember(
            member_id=self.member_id,
            group_instance_id=self.instance_id,
            client_id=self.client_id,
            client_host=self.client_host,
            member_metadata=b"" if protocol is None else self.metadata(protocol),
            member_assignment=self.assignment,
        )
