"""ShareSessions: what each member of a share group fetches from here, kept between its requests.

    epoch     in ShareFetch                                          in ShareAcknowledge
    0         begin a session, in place of the one there may be      INVALID_SHARE_SESSION_EPOCH
    −1        acknowledge, give back what is acquired, and end it    the same
    expected  what has changed since the last request                acknowledge
    other     INVALID_SHARE_SESSION_EPOCH                            the same

Without a session any epoch but 0 is SHARE_SESSION_NOT_FOUND. There are at most `group.share.max.share.sessions`, and
nobody is evicted to make room: SHARE_SESSION_LIMIT_REACHED. A session ends with the connection that began it.
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
    """A partition as clients name it, by its topic's id."""

    topic_id: bytes
    partition: int


class SessionPartition:
    __slots__ = ("is_due", "topic")

    def __init__(self, topic: str | None, *, is_due: bool) -> None:
        self.topic = topic  # its name, as it was known when the session heard of it; None if there was none
        self.is_due = is_due  # the next answer has to tell of it, even if there is nothing to tell


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

    def is_told(self, partition: SharedPartition, *, has_records: bool, has_error: bool) -> bool:
        """Whether an answer has to tell of a partition; one that had records comes last the next time."""
        known = self.partitions.get(partition)
        if known is None:
            return has_records or has_error
        is_told = has_records or has_error or known.is_due
        known.is_due = has_error
        if has_records:
            self.partitions[partition] = self.partitions.pop(partition)
        return is_told


class ShareSessions:
    def __init__(self, slots: int) -> None:
        self._slots = slots
        self._sessions: dict[SessionKey, ShareSession] = {}
        self._by_connection: dict[int, ShareSession] = {}
        self.members: Counter[str] = Counter()  # of each group, how many have a session

    def __len__(self) -> int:
        return len(self._sessions)

    @property
    def partition_count(self) -> int:
        return sum(len(session.partitions) for session in self._sessions.values())

    def get(self, key: SessionKey) -> ShareSession | None:
        return self._sessions.get(key)

    # What a request means

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

    def going_on(self, key: SessionKey, epoch: int) -> ShareSession:
        """The session of a request that is not the first; its epoch moves on unless this is the last."""
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
        """The session that was last begun there, over or not."""
        return self._by_connection.pop(connection_id, None)

    def is_open(self, session: ShareSession) -> bool:
        return self._sessions.get(session.key) is session

    def has_members(self, group_id: str) -> bool:
        if self.members[group_id] > 0:
            return True
        del self.members[group_id]
        return False
