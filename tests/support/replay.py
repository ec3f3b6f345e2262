"""Replay: runs the steps of a golden directory's manifest with our log.

The result of each step is compared with Kafka's at once: offsets, error codes, numbers of segments. The test compares
the files afterwards.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tailrace.log.compaction.cleaner import Cleaned, CleanerSettings, clean_log
from tailrace.log.compaction.cleaner_range import find_dirty_range
from tailrace.log.disk.files import Files
from tailrace.log.partition_log import AppendResult, PartitionLog
from tailrace.log.recovery.recovery import open_log
from tailrace.model.configs.topic_settings import parse_topic_config
from tailrace.model.errors import KafkaError
from tailrace.model.ids import TopicId
from tailrace.records.checks.validation import Origin

Step = Mapping[str, Any]

# The values of the oracle's cleaner.
KAFKAS_BUFFERS = CleanerSettings(dedupe_buffer_bytes=2 * 1024 * 1024, io_buffer_bytes=512 * 1024)


class Replay:
    """One partition log driven by steps."""

    def __init__(self, files: Files, directory: str) -> None:
        self._files = files
        self.directory = directory
        self.now_ms = 0
        self._log: PartitionLog | None = None

    @property
    def log(self) -> PartitionLog:
        assert self._log is not None, "no log is open"
        return self._log

    def run(self, steps: Sequence[Step]) -> None:
        for number, step in enumerate(steps):
            self.do(number, step)

    def do(self, number: int, step: Step) -> None:
        """Run one step. Raise AssertionError, which names the step, if the result differs from Kafka's."""
        self.now_ms = step["now_ms"]
        call: Callable[..., Any] = getattr(self, f"_{step['call']}")
        what = f"step {number}: {step['call']}"
        refusal: KafkaError | None = None
        outcome = None
        try:
            outcome = call(**step["arguments"])
        except KafkaError as error:
            refusal = error
        assert (refusal and refusal.code.name) == step.get("error", {}).get("code"), f"{what}: {refusal}"
        if isinstance(outcome, AppendResult):
            _assert_same_append(what, outcome, step["result"])
        elif isinstance(outcome, Cleaned):
            _assert_same_cleaning(what, outcome, step["result"])
        elif outcome is not None:
            assert outcome == step["result"], what
        if self._log is not None:
            self.log.run_due(self.now_ms)

    # Every method below is a call of OracleLog or LogOracle

    def _open(
        self,
        config: Mapping[str, str],
        topic_id: str | None = None,
        log_start_offset: int = 0,
        recovery_point: int = 0,
        clean_shutdown: bool = True,
    ) -> None:
        self._log = open_log(
            self._files,
            self.directory,
            parse_topic_config(config),
            now_ms=self.now_ms,
            log_start_offset=log_start_offset,
            recovery_point=recovery_point,
            clean=clean_shutdown,
        )
        if topic_id is not None:
            self.log.assign_topic_id(TopicId.parse(topic_id))

    def _advance(self) -> None:
        pass  # due tasks run after every step

    def _append_as_leader(self, records: str, leader_epoch: int = 0, origin: str = "CLIENT") -> AppendResult:
        return self.log.append_as_leader(
            bytearray(base64.b64decode(records)), leader_epoch=leader_epoch, now_ms=self.now_ms, origin=Origin[origin]
        )

    def _append_as_follower(self, records: str, leader_epoch: int = 2**31 - 1) -> AppendResult:
        return self.log.append_as_follower(base64.b64decode(records), leader_epoch=leader_epoch, now_ms=self.now_ms)

    def _set_high_watermark(self, offset: int) -> int:
        self.log.advance_high_watermark(offset)
        return self.log.high_watermark

    def _assign_epoch(self, epoch: int, offset: int) -> None:
        self.log.epochs.assign(epoch, offset)

    def _roll(self) -> int:
        return self.log.roll(self.now_ms).base_offset

    def _take_snapshot(self) -> None:
        self.log.producers.take_snapshot()

    def _update_config(self, config: Mapping[str, str]) -> None:
        self.log.update_config(parse_topic_config(config))

    def _delete_records(self, before_offset: int) -> bool:
        return self.log.delete_records(before_offset, self.now_ms)

    def _delete_old_segments(self) -> int:
        return sum(self.log.delete_old_segments(self.now_ms).values())

    def _clean(self, last_clean_offset: int | None = None) -> Cleaned:
        dirty = find_dirty_range(self.log, last_clean_offset, self.now_ms)
        return clean_log(self._files, self.log, dirty, self.now_ms, KAFKAS_BUFFERS)

    def _truncate_to(self, offset: int) -> bool:
        return self.log.truncate_to(offset, self.now_ms)

    def _truncate_fully_and_start_at(self, offset: int) -> None:
        self.log.truncate_fully(offset, self.now_ms)

    def _shut_down(self) -> None:
        self.log.flush(self.now_ms)
        self.log.close()
        self._log = None

    def _crash(self) -> None:
        self.log.abandon()
        self._log = None


def _assert_same_append(what: str, mine: AppendResult, theirs: Mapping[str, Any]) -> None:
    assert (mine.first_offset, mine.last_offset, mine.log_append_time_ms, mine.log_start_offset) == (
        theirs["first_offset"],
        theirs["last_offset"],
        theirs["log_append_time"],
        theirs["log_start_offset"],
    ), what


def _assert_same_cleaning(what: str, mine: Cleaned, theirs: Mapping[str, Any]) -> None:
    stats = mine.stats
    assert (mine.end_offset, stats.bytes_read, stats.bytes_written, stats.records_read, stats.records_written) == (
        theirs["to_offset"],
        theirs["bytes_read"],
        theirs["bytes_written"],
        theirs["messages_read"],
        theirs["messages_written"],
    ), what
