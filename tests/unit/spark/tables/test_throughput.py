"""Sizes that were measured in a round decide about the next one."""

from __future__ import annotations

from tailrace.spark.tables.throughput import Throughput

MB = 1024 * 1024


def test_the_first_round_is_small_because_records_may_be_large() -> None:
    throughput = Throughput()
    assert throughput.round_offsets(1 << 40) == 100_000
    throughput.note(1000, 1_000_000_000, 500_000_000)
    assert throughput.round_offsets(2_000_000_000) == 2000
    throughput.note(1000, 10_000, 1000)
    assert throughput.round_offsets(2_000_000_000) == 200_000_000


def test_a_round_has_at_least_one_offset() -> None:
    throughput = Throughput()
    throughput.note(1, 1 << 30, 1 << 30)
    assert throughput.round_offsets(1) == 1
    assert throughput.task_offsets(1, 1, 8) == 1


def test_tasks_fill_a_file_but_keep_all_cores_busy() -> None:
    throughput = Throughput()
    throughput.note(1000, 1_000_000, 250_000)  # 1000 bytes an offset, of which files keep a quarter
    assert throughput.task_bytes(256 * MB) == 1024 * MB
    assert throughput.task_offsets(256 * MB, 10_000_000, 2) == 1024 * MB // 1000
    assert throughput.task_offsets(256 * MB, 1_000_000, 4) == 250_000
    assert throughput.task_offsets(256 * MB, 10_000, 100) == 32 * MB // 1000


def test_a_round_without_records_measures_nothing() -> None:
    throughput = Throughput()
    throughput.note(1000, 0, 0)
    assert throughput.round_offsets(1 << 40) == 100_000
    assert throughput.file_bytes(4096) == 1024 * 1024
