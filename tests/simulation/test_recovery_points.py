"""A recovery point past a truncation loses records in a power failure: a rare sequence, step by step.

Segments are truncated, others grow past the old recovery point, and the power fails before they are synced. If the
recovery point stays past the truncation, recovery skips the segments that lost records.
"""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from tailrace.log.directories.log_directory import LogDirectory
from tailrace.log.directories.sealed_flush import SealedFlush
from tailrace.log.directories.serial_work import RetriedWork
from tailrace.model.ids import TopicPartition
from tailrace.model.topic_config import TopicConfig
from tailrace.records.batch import CorruptBatch, split_batches
from tailrace.waiting.chore import Chore, run_now
from tests.simulation.mistakes import MISTAKES
from tests.simulation.power import PoweredFiles
from tests.support.batches import batch

NOW_MS = 1_000_000
CONFIG = TopicConfig(internal_segment_bytes=200)
KEY = TopicPartition("orders", 0)


class LosesAll(Random):
    """A replacement for `random.Random` with which a power failure loses every unsynced byte."""

    def random(self) -> float:
        return 1.0

    def randint(self, a: int, b: int) -> int:
        return a


def load(files: PoweredFiles, flushes: list[SealedFlush]) -> LogDirectory:
    def submit(work: Chore) -> None:
        if isinstance(work, RetriedWork) and isinstance(work.work, SealedFlush):
            flushes.append(work.work)
        else:
            run_now(work, NOW_MS)

    directory = LogDirectory(files, "/data", new_id=lambda: "id")
    assert not directory.load(lambda topic: CONFIG, NOW_MS).failed
    directory.run_work_with(submit, pytest.fail)
    return directory


def is_whole_after_a_power_failure(*, is_sync_done_before_the_truncation: bool) -> bool:
    """Return True if the recovered log has every record up to its end."""
    files = PoweredFiles()
    files.make_directory("/data")
    flushes: list[SealedFlush] = []
    directory = load(files, flushes)
    log = directory.create(KEY, CONFIG, NOW_MS)

    def append(count: int, leader_epoch: int) -> None:
        for _ in range(count):
            log.append_as_leader(batch(b"value"), leader_epoch=leader_epoch, now_ms=NOW_MS)
            directory.run_due(NOW_MS)

    append(9, leader_epoch=0)
    before = flushes[-1]
    before.run()
    if is_sync_done_before_the_truncation:
        before.apply(None, NOW_MS)
        directory.checkpoint()
    log.truncate_to(1, NOW_MS)
    append(12, leader_epoch=1)
    if not is_sync_done_before_the_truncation:
        before.apply(None, NOW_MS)
        directory.checkpoint()
    active = files.open(log.segments.active.log.path)
    active.sync()  # the last segment happens to be durable, the earlier ones are not
    active.close()
    directory.abandon()
    files.lose_power(LosesAll())
    try:
        recovered = load(files, []).logs[KEY]
        found: Any = recovered.read(0, 1 << 20).slice
        offsets = [one.base_offset for one in split_batches(b"" if found is None else found.read())]
    except CorruptBatch:
        return False
    return offsets == list(range(recovered.log_end_offset))


@pytest.mark.parametrize("is_sync_done_before_the_truncation", [True, False])
def test_a_log_that_was_truncated_and_grew_again_is_complete_after_a_power_failure(
    is_sync_done_before_the_truncation: bool,
) -> None:
    assert is_whole_after_a_power_failure(is_sync_done_before_the_truncation=is_sync_done_before_the_truncation)


@pytest.mark.parametrize(
    ("mistake", "is_sync_done_before_the_truncation"),
    [("checkpoints_stay_past_a_truncation", True), ("a_sync_counts_after_the_log_was_truncated", False)],
)
def test_a_recovery_point_past_a_truncation_loses_records(
    mistake: str, is_sync_done_before_the_truncation: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    MISTAKES[mistake](monkeypatch)
    assert not is_whole_after_a_power_failure(is_sync_done_before_the_truncation=is_sync_done_before_the_truncation)
