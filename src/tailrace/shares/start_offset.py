"""StartOffsets: the first offset of a share group in a partition that it has never read (share.auto.offset.reset).

`by_duration:` means the first record after a time, which may be inside a compressed batch. Such batches are read and
searched one at a time, on another thread.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any, Final, NamedTuple, TypeAlias

from tailrace.log.reading.timestamp_lookup import BatchSearch, FoundOffset, begin_search
from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.model.ids import Offset
from tailrace.records.batch import CorruptBatch
from tailrace.replication.partition import Partition

BY_DURATION: Final = "by_duration:"
_DURATION: Final = re.compile(
    r"(?P<sign>[-+]?)P(?:(?P<days>[-+]?\d+)D)?"
    r"(?:T(?:(?P<hours>[-+]?\d+)H)?(?:(?P<minutes>[-+]?\d+)M)?(?:(?P<seconds>[-+]?\d+)(?:[.,](?P<part>\d{0,9}))?S)?)?",
    re.IGNORECASE,
)
_MS = {"days": 86_400_000, "hours": 3_600_000, "minutes": 60_000, "seconds": 1_000}


# (run, apply(result, now_ms), failed(error, now_ms)): call `run` on any thread, then `apply` on the loop's thread
RunOnWorker: TypeAlias = Callable[
    [Callable[[], Any], Callable[[Any, int], None], Callable[[BaseException, int], None]], None
]


class _Question(NamedTuple):
    """A partition whose start offset is searched for."""

    partition: Partition
    target_ms: int
    found: Callable[[Offset, int], None]
    refuse: Callable[[KafkaError, int], None]


class StartOffsets:
    def __init__(self, run_on_worker: RunOnWorker) -> None:
        self._run_on_worker = run_on_worker
        self._questions: deque[_Question] = deque()
        self._is_searching = False

    def find(
        self,
        partition: Partition,
        reset: str,
        found: Callable[[Offset, int], None],
        refuse: Callable[[KafkaError, int], None],
        now_ms: int,
    ) -> None:
        """Call `found(offset, now_ms)` or `refuse(error, now_ms)`, now or later."""
        if reset == "earliest":
            found(partition.log.log_start_offset, now_ms)
        elif reset == "latest":
            found(partition.log.high_watermark, now_ms)
        else:
            try:
                target_ms = now_ms - duration_ms(reset.removeprefix(BY_DURATION))
            except KafkaError as error:
                refuse(error, now_ms)
                return
            self._questions.append(_Question(partition, target_ms, found, refuse))
            self._search_next(now_ms)

    def _search_next(self, now_ms: int) -> None:
        while self._questions and not self._is_searching:
            question = self._questions.popleft()
            self._handle_search(question, begin_search(question.partition.log, question.target_ms), now_ms)

    def _handle_search(self, question: _Question, search: FoundOffset | BatchSearch | None, now_ms: int) -> None:
        """Return the result of a search, or search a batch for it."""
        if isinstance(search, BatchSearch):
            self._is_searching = True
            self._run_on_worker(search.find, partial(self._searched, question, search), partial(self._failed, question))
        elif search is None or search.offset >= question.partition.log.high_watermark:
            reason = f"Offset for timestamp not found for topic partition: {question.partition.key}"
            question.refuse(KafkaError(ErrorCode.OFFSET_NOT_AVAILABLE, reason), now_ms)
        else:
            question.found(search.offset, now_ms)

    def _searched(self, question: _Question, search: BatchSearch, found: FoundOffset | None, now_ms: int) -> None:
        self._is_searching = False
        next_one: FoundOffset | BatchSearch | None = found
        if found is None and not search.is_last:
            next_one = begin_search(question.partition.log, search.target, search.next_start)
        self._handle_search(question, next_one, now_ms)
        self._search_next(now_ms)

    def _failed(self, question: _Question, error: BaseException, now_ms: int) -> None:
        self._is_searching = False
        code = ErrorCode.CORRUPT_MESSAGE if isinstance(error, CorruptBatch) else ErrorCode.UNKNOWN_SERVER_ERROR
        question.refuse(KafkaError(code, f"{question.partition.key}: {error}"), now_ms)
        self._search_next(now_ms)


def duration_ms(text: str) -> int:
    """Parse an ISO 8601 duration as Java does; return milliseconds."""
    found = _DURATION.fullmatch(text)
    if found is None:
        raise KafkaError(
            ErrorCode.INVALID_CONFIG, f"'{text}' is not an ISO 8601 duration; use for example PT24H or P7D"
        )
    total = sum(int(found[name]) * size for name, size in _MS.items() if found[name])
    if found["part"]:
        fraction = int(found["part"].ljust(9, "0")) // 1_000_000
        total += -fraction if found["seconds"].startswith("-") else fraction
    return -total if found["sign"] == "-" else total
