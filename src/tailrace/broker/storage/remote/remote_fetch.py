"""DelayedRemoteFetch: a fetch that waits for records from the remote store.

A fetch that finds some of its partitions only in the remote store reads the others at once. Then it waits until all
remote reads have ended, or for `remote.fetch.max.wait.ms`, which replaces the request's own wait. Partitions whose read
has not ended are empty in the response. Their reads continue, and the client's retry finds the results.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tailrace.replication.hosted_partitions import HostedPartitions
from tailrace.tiers.reading.remote_reader import RemoteAnswer, RemoteEnd, RemotePart
from tailrace.waiting.purgatory import DelayedOperation


class DelayedRemoteFetch(DelayedOperation):
    __slots__ = ("_answers", "_ended", "_expired", "_partitions", "_parts", "_polls")

    def __init__(
        self,
        parts: Sequence[RemotePart],
        polls: Sequence[Callable[[], RemoteAnswer | None]],
        partitions: HostedPartitions,
        ended: RemoteEnd,
        expired: Callable[[], None],
        deadline_ms: int,
    ) -> None:
        """`polls` return the answers of the parts, or None while a read runs. `ended` is called once, and `expired`
        before it if the time is over."""
        super().__init__(deadline_ms)
        self._parts = parts
        self._polls = polls
        self._partitions = partitions
        self._ended = ended
        self._expired = expired
        self._answers: list[RemoteAnswer | None] = [None] * len(parts)

    def try_complete(self, now_ms: int) -> bool:
        self._look()
        if not all(answer is not None or self._has_moved(part) for part, answer in self._pairs()):
            return False
        self._ended(self._pairs(), now_ms)
        return True

    def expire(self, now_ms: int) -> None:
        self._look()
        self._expired()
        self._ended(self._pairs(), now_ms)

    def facts(self) -> dict[str, Any]:
        return {"remoteReads": sum(answer is None for answer in self._answers)}

    def _look(self) -> None:
        for slot, poll in enumerate(self._polls):
            if self._answers[slot] is None:
                self._answers[slot] = poll()

    def _pairs(self) -> list[tuple[RemotePart, RemoteAnswer | None]]:
        return list(zip(self._parts, self._answers, strict=True))

    def _has_moved(self, part: RemotePart) -> bool:
        """Return True if the partition is no longer led here, so that its answer does not matter."""
        partition = self._partitions.get(part.key)
        return partition is None or not partition.is_leader
