"""LeaderSession: the fetch session of a follower with one leader (KIP-227), from the follower's side.

The first request lists every partition, and the leader keeps them. Later requests list only new and changed partitions,
and those to forget. Whenever the two sides may disagree, the next request opens a new session.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple, TypeAlias

from tailrace.model.ids import LeaderEpoch, Offset
from tailrace.protocol.messages import FetchRequest

PartitionId: TypeAlias = tuple[bytes, int]  # topic id, partition

_FIRST: Final = 0
_LAST_EPOCH: Final = 2**31 - 1


class FetchPosition(NamedTuple):
    """The fetch position of one partition."""

    leader_epoch: LeaderEpoch
    fetch_offset: Offset
    last_fetched_epoch: LeaderEpoch
    log_start_offset: Offset


class LeaderSession:
    def __init__(self) -> None:
        self._id = 0
        self._epoch = _FIRST
        self._sent: dict[PartitionId, FetchPosition] = {}  # the partitions of the session, as the leader has them
        self._asked: FetchRequest | None = None  # the request whose response continues the session

    @property
    def is_empty(self) -> bool:
        return not self._sent

    def fill(self, request: FetchRequest, wants: Mapping[PartitionId, FetchPosition], partition_bytes_max: int) -> None:
        """Add to a request the partitions that differ from those in the leader's session."""
        is_first = self._epoch == _FIRST
        news = wants if is_first else {key: want for key, want in wants.items() if self._sent.get(key) != want}
        gone = [] if is_first else [key for key in self._sent if key not in wants]
        request.session_id = self._id
        request.session_epoch = self._epoch
        request.topics = _topics(news, partition_bytes_max)
        request.forgotten_topics_data = _forgotten(gone)
        self._sent = dict(wants)
        self._asked = request

    def answered(self, request: FetchRequest, response: Any) -> None:
        """Continue the session after a response without an error, unless a new session is due."""
        if request is not self._asked:
            return
        if self._epoch == _FIRST:
            self._id = response.session_id
        if not self._id:  # the leader keeps no session: every request lists all partitions
            self._epoch = _FIRST
        else:
            self._epoch = 1 if self._epoch == _LAST_EPOCH else self._epoch + 1

    def renew(self) -> None:
        """Let the next request open a new session; the leader then closes the old one."""
        self._epoch = _FIRST
        self._asked = None


def _topics(wants: Mapping[PartitionId, FetchPosition], partition_bytes_max: int) -> list[FetchRequest.FetchTopic]:
    topics: dict[bytes, list[FetchRequest.FetchPartition]] = {}
    for (topic_id, index), want in wants.items():
        topics.setdefault(topic_id, []).append(
            FetchRequest.FetchPartition(
                partition=index,
                current_leader_epoch=want.leader_epoch,
                fetch_offset=want.fetch_offset,
                last_fetched_epoch=want.last_fetched_epoch,
                log_start_offset=want.log_start_offset,
                partition_max_bytes=partition_bytes_max,
            )
        )
    return [FetchRequest.FetchTopic(topic_id=topic_id, partitions=found) for topic_id, found in topics.items()]


def _forgotten(keys: list[PartitionId]) -> list[FetchRequest.ForgottenTopic]:
    topics: dict[bytes, list[int]] = {}
    for topic_id, index in keys:
        topics.setdefault(topic_id, []).append(index)
    return [FetchRequest.ForgottenTopic(topic_id=topic_id, partitions=found) for topic_id, found in topics.items()]
