"""Operations of group requests on share group state: many partitions at once, each with its own result."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import TypeAlias

from tailrace.broker.coordination.groups import Groups
from tailrace.broker.requests.groups.merged_parts import MergedParts
from tailrace.broker.shares.shares import Shares
from tailrace.coordinator.groups.group_coordinator import GroupCoordinator
from tailrace.coordinator.groups.share.share_heartbeat import Initialization
from tailrace.coordinator.runtime import Refuse
from tailrace.coordinator.shard import StateChange
from tailrace.metadata.controller.controller import Controller
from tailrace.metadata.image.features import SHARE_VERSION
from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.shares.state.persisted_state import PersistedState, SharePartitionKey

Partition: TypeAlias = tuple[bytes, int]  # topic id and partition number
Errors: TypeAlias = dict[Partition, KafkaError]  # of the failed partitions
Summaries: TypeAlias = dict[Partition, "PersistedState | KafkaError | None"]


def check_share_groups(*, controller: Controller) -> None:
    """Raise KafkaError if the feature share.version is off in this cluster."""
    if controller.image.features.get(SHARE_VERSION, 0) < 1:
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, "share.version is 0: there are no share groups.")


def begin_state(
    wanted: Initialization,
    finish: Callable[[Errors, int], None],
    now_ms: int,
    *,
    try_again_soon: bool = True,
    groups: Groups,
    shares: Shares,
) -> None:
    """Initialize the state of partitions at the share coordinator, and note the result in the group.

    After a failure, the next heartbeat of the group retries. Without `try_again_soon`, a failure is not noted, and a
    heartbeat retries only after group.share.initialize.retry.interval.ms.
    """

    def done(errors: Errors, now_ms: int) -> None:
        def note(shard: GroupCoordinator) -> StateChange[None]:
            offsets = shard.share_offsets
            take = offsets.not_initialized if errors else offsets.initialized
            return take(wanted.group_id, wanted.partitions, now_ms)

        if errors and not try_again_soon:
            finish(errors, now_ms)
            return
        groups.write(
            wanted.group_id,
            note,
            lambda _, now_ms: finish(errors, now_ms),
            lambda _, now_ms: finish(errors, now_ms),  # a heartbeat retries after a while
            now_ms,
        )

    def begin(key: SharePartitionKey, answer: Callable[[ErrorCode, int], None], refuse: Refuse, now_ms: int) -> None:
        offset = wanted.offsets[key.topic_id][key.partition]
        shares.persister.initialize(key, wanted.state_epoch, offset, answer, refuse, now_ms)

    _for_each(wanted.group_id, wanted.partitions, begin, done, now_ms)


def delete_state(
    group_id: str,
    partitions: Mapping[bytes, Collection[int]],
    finish: Callable[[Errors, int], None],
    now_ms: int,
    *,
    shares: Shares,
) -> None:
    _for_each(group_id, partitions, shares.persister.delete, finish, now_ms)


def read_summaries(
    group_id: str,
    partitions: Mapping[bytes, Collection[int]],
    finish: Callable[[Summaries, int], None],
    now_ms: int,
    *,
    shares: Shares,
) -> None:
    """Read the progress of a group. The result is None for partitions that the group has not begun to read."""
    asked = [(topic, number) for topic, numbers in partitions.items() for number in numbers]

    def done(parts: list[PersistedState | KafkaError | None], now_ms: int) -> None:
        finish(dict(zip(asked, parts, strict=True)), now_ms)

    merged: MergedParts[PersistedState | KafkaError | None] = MergedParts(len(asked), done)
    for index, (topic, number) in enumerate(asked):
        take = merged.part(index)
        shares.persister.read_summary(SharePartitionKey(group_id, topic, number), take, take, now_ms)
    merged.begin(now_ms)


def _for_each(
    group_id: str,
    partitions: Mapping[bytes, Collection[int]],
    ask: Callable[[SharePartitionKey, Callable[[ErrorCode, int], None], Refuse, int], None],
    finish: Callable[[Errors, int], None],
    now_ms: int,
) -> None:
    asked = [(topic, number) for topic, numbers in partitions.items() for number in sorted(numbers)]

    def done(parts: list[KafkaError | None], now_ms: int) -> None:
        finish({one: error for one, error in zip(asked, parts, strict=True) if error is not None}, now_ms)

    merged: MergedParts[KafkaError | None] = MergedParts(len(asked), done)
    for index, (topic, number) in enumerate(asked):
        take = merged.part(index)
        ask(SharePartitionKey(group_id, topic, number), partial(_take_success, take), take, now_ms)
    merged.begin(now_ms)


def _take_success(take: Callable[[KafkaError | None, int], None], _: ErrorCode, now_ms: int) -> None:
    take(None, now_ms)
