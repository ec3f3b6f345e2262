"""NewReplicas: replicas that the metadata assigns to this broker and that have no log yet.

Chores create the logs in groups of GROUP_SIZE (`log/directories/log_creation.py`), and the broker serves other requests
meanwhile. When its log exists, a partition is hosted according to the metadata of that time. Until then clients get
NOT_LEADER_OR_FOLLOWER and retry, as with a Kafka broker that has not read the metadata yet.

If a change of the metadata has many new partitions, they are only announced first. They are looked up one group at a
time, each after the previous group is created. So topics that are created meanwhile do not wait for all of them.

The response to a request that creates topics waits until their logs are created (`when_created`), but at most
`RESPONSE_WAIT_MS`. Apache Kafka does not wait for its brokers at all.
"""

from __future__ import annotations

import logging
from collections import Counter, deque
from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple

from tailrace.log.directories.log_creation import LogCreation
from tailrace.log.directories.log_directories import LogDirectories
from tailrace.log.directories.log_directory import LogDirectory
from tailrace.log.directories.new_logs import NewLog
from tailrace.model.ids import TopicPartition
from tailrace.model.shortage import is_shortage
from tailrace.waiting.chore import run_now
from tailrace.waiting.purgatory import DelayedOperation, Purgatory

_log = logging.getLogger(__name__)

GROUP_SIZE = 100  # logs that are created with one sync of the directory, and hosted without a pause
RESPONSE_WAIT_MS = 5_000  # how long a response waits for the logs of new partitions


class _TopicKey(NamedTuple):
    """The purgatory's key for responses that wait for the logs of a topic."""

    topic: str


class _AwaitedLogs(DelayedOperation):
    """A response that waits until the logs of some topics are created."""

    __slots__ = ("_are_created", "_then")

    def __init__(self, are_created: Callable[[], bool], then: Callable[[int], None], deadline_ms: int) -> None:
        super().__init__(deadline_ms)
        self._are_created = are_created
        self._then = then

    def try_complete(self, now_ms: int) -> bool:
        if not self._are_created():
            return False
        self._then(now_ms)
        return True

    def expire(self, now_ms: int) -> None:
        self._then(now_ms)


class NewReplicas:
    def __init__(
        self,
        logs: LogDirectories,
        look_up: Callable[[TopicPartition, int], None],
        created: Callable[[NewLog, int], None],
        offline: Callable[[TopicPartition], object],
        purgatory: Purgatory,
    ) -> None:
        """`look_up` hosts an announced partition or calls `add` for it, unless the metadata has removed it.
        `created` is called when a log was created, `offline` if no log directory can take the partition."""
        self._logs = logs
        self._look_up = look_up
        self._created = created
        self._offline = offline
        self._purgatory = purgatory
        self._announced: deque[TopicPartition] = deque()
        self._added: list[NewLog] = []
        self._uncreated: set[TopicPartition] = set()  # partitions that have no log yet
        self._uncreated_of: Counter[str] = Counter()  # their number by topic

    def __contains__(self, key: TopicPartition) -> bool:
        return key in self._uncreated

    def announce(self, key: TopicPartition) -> None:
        """Note a new partition. It is looked up with its group."""
        self._note_uncreated(key)
        self._announced.append(key)

    def add(self, new: NewLog) -> None:
        """Note a log to create."""
        self._note_uncreated(new.partition)
        self._added.append(new)

    def create(self, now_ms: int, *, at_once: bool = False) -> None:
        """Start chores that create the added logs. With `at_once`, create them before returning."""
        self._create_added(now_ms, at_once=at_once)
        while self._announced and len(self._uncreated) == len(self._announced):
            self._look_up_announced(now_ms)
            self._create_added(now_ms, at_once=at_once)

    def _create_added(self, now_ms: int, *, at_once: bool) -> None:
        added, self._added = self._added, []
        by_place: dict[str, tuple[LogDirectory, list[NewLog]]] = {}
        for new in added:
            directory = self._logs.place_for(new.partition)
            if directory is None:
                _log.error("%s stays offline: no log directory can take it", new.partition)
                self._remove(new.partition)
                self._offline(new.partition)
                self._respond(new.partition.topic, now_ms)
                continue
            directory.add_being_created(1)
            by_place.setdefault(directory.path, (directory, []))[1].append(new)
        for directory, news in by_place.values():
            for start in range(0, len(news), GROUP_SIZE):
                work = LogCreation(
                    directory, news[start : start + GROUP_SIZE], now_ms, self._group_created, self._failed
                )
                if at_once:
                    run_now(work, now_ms)
                else:
                    directory.run_on_worker(work, now_ms)

    def _look_up_announced(self, now_ms: int) -> None:
        """Look up the next group of announced partitions."""
        while self._announced and len(self._added) < GROUP_SIZE:
            key = self._announced.popleft()
            self._remove(key)
            self._look_up(key, now_ms)
            self._respond(key.topic, now_ms)

    def when_created(
        self, topics: Collection[str], then: Callable[[int], None], now_ms: int, wait_ms: int = RESPONSE_WAIT_MS
    ) -> None:
        """Call `then(now_ms)` when the logs of these topics exist, now or later, but after `wait_ms` at the latest."""
        keys = [_TopicKey(topic) for topic in topics if topic in self._uncreated_of]
        if keys:
            operation = _AwaitedLogs(
                lambda: not any(key.topic in self._uncreated_of for key in keys), then, now_ms + wait_ms
            )
            self._purgatory.try_complete_or_watch(operation, keys, now_ms)
        else:
            then(now_ms)

    def _group_created(self, news: Sequence[NewLog], now_ms: int) -> None:
        for new in news:
            self._remove(new.partition)
            self._created(new, now_ms)
        for topic in {new.partition.topic for new in news}:
            self._respond(topic, now_ms)
        self.create(now_ms)  # the next group, and logs that were added meanwhile

    def _failed(self, directory: LogDirectory, news: Sequence[NewLog], error: OSError, now_ms: int) -> None:
        """Create the logs in another directory. After a shortage, they wait for the next change of the metadata."""
        self._logs.on_failure(directory, error)
        for new in news:
            self._remove(new.partition)
            self.add(new)
        if not is_shortage(error):
            self.create(now_ms)

    def _note_uncreated(self, key: TopicPartition) -> None:
        self._uncreated.add(key)
        self._uncreated_of[key.topic] += 1

    def _remove(self, key: TopicPartition) -> None:
        self._uncreated.remove(key)
        self._uncreated_of[key.topic] -= 1
        if not self._uncreated_of[key.topic]:
            del self._uncreated_of[key.topic]

    def _respond(self, topic: str, now_ms: int) -> None:
        """Complete the responses that wait for a topic, if its logs are created."""
        if topic not in self._uncreated_of:
            self._purgatory.check(_TopicKey(topic), now_ms)
