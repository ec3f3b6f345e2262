"""ShareSessions: the partitions that each member of a share group fetches here, kept between its requests.

    epoch     in ShareFetch                                          in ShareAcknowledge
    0         begin a session, which replaces an existing one        INVALID_SHARE_SESSION_EPOCH
    −1        acknowledge, release what is acquired, and end it      the same
    expected  changes since the last request                         acknowledge
    other     INVALID_SHARE_SESSION_EPOCH                            the same

Without a session any epoch but 0 is SHARE_SESSION_NOT_FOUND. There are at most `group.share.max.share.sessions`. No
session is evicted to make room: SHARE_SESSION_LIMIT_REACHED. A session ends with the connection that began it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from tailrace.model.errors import ErrorCode, KafkaError

INITIAL_EPOCH = 0
FINAL_EPOCH = -1
_INT_MAX = 2**31 - 1


def next_epoch(epoch: int) -> int:
    if epoch < 0:
        return FINAL_EPOCH
    return 1 if epoch == _INT_MAX else epoch + 1


class SharedPartition(NamedTuple):
    """A partition by its topic's id, as clients name it."""

    topic_id: bytes
    partition: int


class SessionPartition:
    __slots__ = ("is_due", "topic")

    def __init__(self, topic: str | None, *, is_due: bool) -> None:
        self.topic = topic  # the topic's name when it was added to the session; None if unknown
        self.is_due = is_due  # the next response must include it, even without records


class SessionKey(NamedTuple):
    group_id: str
    member_id: str


class ShareSession:
    __slots__ = ("connection_id", "epoch", "key", "partitions")

    def __init__(self, key: SessionKey, partitions: Mapping[SharedPartition, str | None], connection_id: int) -> None:
        self.key = key
        self.connection_id = connection_id
        self.epoch = next_epoch(INITIAL_EPOCH)
        self.partitions = {one: SessionPartition(topic, is_due=False) for one, topic in partitions.items()}

    def update(self, added: Mapping[SharedPartition, str | None], forgotten: Iterable[SharedPartition]) -> None:
        for one, topic in added.items():
            if one not in self.partitions:
                self.partitions[one] = SessionPartition(topic, is_due=True)
        for one in forgotten:
            self.partitions.pop(one, None)

    def is_in_response(self, partition: SharedPartition, *, has_records: bool, has_error: bool) -> bool:
        """Return True if the response must include a partition. A partition with records comes last the next time."""
        known = self.partitions.get(partition)
        if known is None:
            return has_records or has_error
        is_included = has_records or has_error or known.is_due
        known.is_due = has_error
        if has_records:
            self.partitions[partition] = self.partitions.pop(partition)
        return is_included


class ShareSessions:
    def __init__(self, slots: int) -> None:
        self._slots = slots
        self._sessions: dict[SessionKey, ShareSession] = {}
        self._by_connection: dict[int, ShareSession] = {}
        self.members: Counter[str] = Counter()  # group → number of members with a session

    def __len__(self) -> int:
        return len(self._sessions)

    @property
    def partition_count(self) -> int:
        return sum(len(session.partitions) for session in self._sessions.values())

    def get(self, key: SessionKey) -> ShareSession | None:
        return self._sessions.get(key)

    # Requests

    def begin(
        self, key: SessionKey, partitions: Mapping[SharedPartition, str | None], connection_id: int
    ) -> ShareSession:
        self.remove(key)
        if len(self._sessions) >= self._slots:
            raise KafkaError(ErrorCode.SHARE_SESSION_LIMIT_REACHED)
        session = ShareSession(key, partitions, connection_id)
        self._sessions[key] = session
        self._by_connection[connection_id] = session
        self.members[key.group_id] += 1
        return session

    def continue_session(self, key: SessionKey, epoch: int) -> ShareSession:
        """Return the session of a later request. The epoch is incremented unless the request ends the session."""
        session = self._sessions.get(key)
        if session is None:
            raise KafkaError(ErrorCode.SHARE_SESSION_NOT_FOUND)
        if epoch != FINAL_EPOCH:
            if session.epoch != epoch:
                raise KafkaError(ErrorCode.INVALID_SHARE_SESSION_EPOCH)
            session.epoch = next_epoch(session.epoch)
        return session

    # The end of sessions

    def remove(self, key: SessionKey) -> ShareSession | None:
        session = self._sessions.pop(key, None)
        if session is not None:
            self.members[key.group_id] -= 1
        return session

    def connection_closed(self, connection_id: int) -> ShareSession | None:
        """Return the session that was last begun on a connection, even if it has ended."""
        return self._by_connection.pop(connection_id, None)

    def is_open(self, session: ShareSession) -> bool:
        return self._sessions.get(session.key) is session

    def has_members(self, group_id: str) -> bool:
        if self.members[group_id] > 0:
            return True
        del self.members[group_id]
        return False
