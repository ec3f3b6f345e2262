"""NewReplicas: replicas that the metadata gives to this broker and that have no log yet.

Logs are made in pieces beside the thread of the broker (`log/directories/log_creation.py`), which serves others
meanwhile. A partition is hosted, as the metadata says by then, when its log is there; until then clients are told
NOT_LEADER_OR_FOLLOWER, as by a broker of Kafka's that has yet to read of it, and ask again. Whoever is to be answered
when partitions can be used says so: `when_made`.

Many new partitions are only `announced` first: they are looked up a piece at a time, when the piece before is made.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Sequence
from itertools import count

from tailrace.log.directories.log_creation import LogCreation
from tailrace.log.directories.log_directories import LogDirectories
from tailrace.log.directories.log_directory import LogDirectory
from tailrace.log.directories.new_logs import NewLog
from tailrace.log.directories.serial_work import do_at_once
from tailrace.model.ids import TopicPartition
from tailrace.model.shortage import is_shortage

_log = logging.getLogger(__name__)

_PIECE = 100  # logs for which the directory is synced once, and which are hosted without a pause


class NewReplicas:
    def __init__(
        self,
        logs: LogDirectories,
        look_up: Callable[[TopicPartition, int], None],
        made: Callable[[NewLog, int], None],
        lost: Callable[[TopicPartition], object],
    ) -> None:
        """`look_up`: an announced partition is wanted now, or hosted, or is not needed any more. `made`: there is a log
        now. `lost`: no directory takes one."""
        self._logs = logs
        self._look_up = look_up
        self._made = made
        self._lost = lost
        self._announced: deque[TopicPartition] = deque()
        self._wanted: list[NewLog] = []
        self._numbers = count()
        self._unmade: dict[TopicPartition, int] = {}  # wanted or being made; the oldest first
        self._waiting: deque[tuple[int, Callable[[int], None]]] = deque()

    def __contains__(self, key: TopicPartition) -> bool:
        return key in self._unmade

    def announce(self, key: TopicPartition) -> None:
        """Note a new partition. It is looked up when its turn comes."""
        self._unmade[key] = next(self._numbers)
        self._announced.append(key)

    def want(self, new: NewLog) -> None:
        self._unmade[new.partition] = next(self._numbers)
        self._wanted.append(new)

    def make(self, now_ms: int, *, at_once: bool = False) -> None:
        """Begin to make what is wanted; `at_once`: be done with it."""
        self._make_wanted(now_ms, at_once=at_once)
        while self._announced and len(self._unmade) == len(self._announced):
            self._look_up_announced(now_ms)
            self._make_wanted(now_ms, at_once=at_once)
        self._tell(now_ms)

    def _make_wanted(self, now_ms: int, *, at_once: bool) -> None:
        wanted, self._wanted = self._wanted, []
        by_place: dict[str, tuple[LogDirectory, list[NewLog]]] = {}
        for new in wanted:
            directory = self._logs.place_for(new.partition)
            if directory is None:
                _log.error("%s stays offline: no log directory takes it", new.partition)
                del self._unmade[new.partition]
                self._lost(new.partition)
                continue
            directory.expect(1)
            by_place.setdefault(directory.path, (directory, []))[1].append(new)
        for directory, news in by_place.values():
            for start in range(0, len(news), _PIECE):
                work = LogCreation(directory, news[start : start + _PIECE], now_ms, self._are_made, self._failed)
                if at_once:
                    do_at_once(work, now_ms)
                else:
                    directory.elsewhere(work, now_ms)

    def _look_up_announced(self, now_ms: int) -> None:
        """Look up the next piece of announced partitions."""
        while self._announced and len(self._wanted) < _PIECE:
            key = self._announced.popleft()
            del self._unmade[key]
            self._look_up(key, now_ms)

    def when_made(self, then: Callable[[int], None], now_ms: int) -> None:
        """Call back when all that is wanted by now is made, which it may be already."""
        if self._unmade:
            self._waiting.append((next(self._numbers), then))
        else:
            then(now_ms)

    def _are_made(self, news: Sequence[NewLog], now_ms: int) -> None:
        for new in news:
            del self._unmade[new.partition]
            self._made(new, now_ms)
        self.make(now_ms)  # what has changed meanwhile

    def _failed(self, directory: LogDirectory, news: Sequence[NewLog], error: OSError, now_ms: int) -> None:
        """Another directory may take them. After a shortage they are made with the next change of the metadata."""
        self._logs.on_failure(directory, error)
        for new in news:
            del self._unmade[new.partition]
            self.want(new)
        if not is_shortage(error):
            self.make(now_ms)

    def _tell(self, now_ms: int) -> None:
        oldest = next(iter(self._unmade.values()), None)
        while self._waiting and (oldest is None or self._waiting[0][0] < oldest):
            self._waiting.popleft()[1](now_ms)
