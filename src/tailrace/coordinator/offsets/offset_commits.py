"""OffsetCommits: commits, fetches and deletions of a group's offsets, with their checks and records."""

from __future__ import annotations

from collections.abc import Callable, MutableMapping, Sequence
from typing import Protocol, TypeAlias

from tailrace.coordinator.groups.classic.classic_group import PREPARING, STABLE, ClassicGroup
from tailrace.coordinator.groups.classic.classic_rebalance import Rebalances
from tailrace.coordinator.groups.group import Committer, Group, TopicCommit
from tailrace.coordinator.offsets.committed_offsets import (
    DEFAULT_RETENTION,
    CommittedOffsets,
    FetchedOffset,
    Verdict,
)
from tailrace.coordinator.offsets.metadata_limit import split_by_metadata
from tailrace.coordinator.shard import StateChange
from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.model.ids import NO_PRODUCER_EPOCH, NO_PRODUCER_ID
from tailrace.protocol.errors import UnwritableMessage

_UNKNOWN_GROUP_FROM = 9  # the OffsetCommit version that uses GROUP_ID_NOT_FOUND instead of ILLEGAL_GENERATION


OnDone: TypeAlias = Callable[[ErrorCode, int], None]  # as in StateChange


class EnsureGroup(Protocol):
    def __call__(self, group_id: str, now_ms: int) -> Group:
        """Return the group. Create a group without members if there is none."""


class OffsetCommits:
    def __init__(
        self,
        groups: MutableMapping[str, Group],
        offsets: CommittedOffsets,
        ensure: EnsureGroup,
        rebalances: Rebalances,
        *,
        metadata_size_max: int,
    ) -> None:
        self._metadata_size_max = metadata_size_max
        self._groups = groups
        self._offsets = offsets
        self._ensure = ensure
        self._rebalances = rebalances

    def commit(
        self,
        group_id: str,
        committer: Committer,
        topics: Sequence[TopicCommit],
        now_ms: int,
        *,
        retention_ms: int = DEFAULT_RETENTION,
        producer_id: int = NO_PRODUCER_ID,
        producer_epoch: int = NO_PRODUCER_EPOCH,
    ) -> StateChange[list[Verdict]]:
        """Plan an OffsetCommit, or a TxnOffsetCommit, whose offsets are pending until the transaction ends."""
        take_back = self._admit(group_id, committer, topics, now_ms)
        try:
            kept, verdicts = split_by_metadata(topics, self._metadata_size_max)
            records = self._offsets.plan_commit(
                group_id, kept, now_ms, retention_ms=retention_ms, producer_id=producer_id
            )
        except UnwritableMessage:
            if take_back is not None:
                take_back(ErrorCode.UNKNOWN_SERVER_ERROR, now_ms)
            raise
        return StateChange(records, verdicts, producer_id, producer_epoch, on_done=take_back)

    def _admit(self, group_id: str, committer: Committer, topics: Sequence[TopicCommit], now_ms: int) -> OnDone | None:
        """Check the committer. Return the function to call with the result of the commit, or None."""
        group = self._groups.get(group_id)
        if group is None:
            if committer.generation >= 0:
                is_named = committer.version >= _UNKNOWN_GROUP_FROM and not committer.is_transactional
                raise KafkaError(
                    ErrorCode.GROUP_ID_NOT_FOUND if is_named else ErrorCode.ILLEGAL_GENERATION,
                    f"Group {group_id} not found.",
                )
            return self._made(group_id, now_ms)
        try:
            group.check_offset_commit(committer, topics)
        except KafkaError as error:
            if committer.is_transactional and error.code is ErrorCode.STALE_MEMBER_EPOCH:
                raise KafkaError(ErrorCode.ILLEGAL_GENERATION) from error
            raise
        if (
            not committer.is_transactional
            and isinstance(group, ClassicGroup)
            and (group.state is STABLE or group.state is PREPARING)
        ):
            self._rebalances.extend_session(group, group.members[committer.member_id], now_ms)
        return None

    def _made(self, group_id: str, now_ms: int) -> OnDone:
        """Create a group for its first commit. Return a function that removes it if the commit failed."""
        made = self._ensure(group_id, now_ms)

        def forget(error: ErrorCode, _: int) -> None:
            is_unused = made.is_empty and not self._offsets.knows(group_id)
            if error is not ErrorCode.NONE and is_unused and self._groups.get(group_id) is made:
                del self._groups[group_id]

        return forget

    def fetch(
        self,
        group_id: str,
        member_id: str | None,
        member_epoch: int,
        topics: Sequence[tuple[str, Sequence[int]]] | None,
        *,
        require_stable: bool,
    ) -> list[tuple[str, list[FetchedOffset]]]:
        """Return the requested committed offsets, or all; -1 for partitions without one."""
        group = self._groups.get(group_id)
        if group is not None:
            group.check_offset_fetch(member_id, member_epoch)
        return self._offsets.fetch(group_id, topics, require_stable=require_stable)

    def delete(self, group_id: str, topics: Sequence[tuple[str, Sequence[int]]]) -> StateChange[list[list[ErrorCode]]]:
        group = self._groups.get(group_id)
        if group is None:
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
        group.check_offset_delete()
        records = []
        errors = []
        for topic, partitions in topics:
            if group.is_subscribed_to(topic):
                errors.append([ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC for _ in partitions])
                continue
            errors.append([ErrorCode.NONE for _ in partitions])
            found = (self._offsets.plan_delete(group_id, topic, partition) for partition in partitions)
            records += [record for record in found if record is not None]
        return StateChange(records, errors)
