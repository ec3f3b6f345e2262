"""Small files of one partition are merged if it is worthwhile."""

from __future__ import annotations

from tailrace.spark.tables.formats.merge_plan import ENOUGH_FILES, SmallFile, plan_merges

TARGET = 1000


def files(*sizes: int, partition: str = "p") -> list[SmallFile]:
    return [SmallFile(f"{partition}{number}", size, partition, number) for number, size in enumerate(sizes)]


def handles(merges: list[list[SmallFile]]) -> list[list[str]]:
    return [[file.handle for file in group] for group in merges]


def test_few_small_files_are_left_alone() -> None:
    assert plan_merges(files(*[10] * (ENOUGH_FILES - 1)), TARGET) == []
    assert plan_merges(files(400), TARGET) == []


def test_enough_small_files_are_merged() -> None:
    assert len(plan_merges(files(*[10] * ENOUGH_FILES), TARGET)[0]) == ENOUGH_FILES


def test_files_that_fill_half_of_the_target_are_merged() -> None:
    assert handles(plan_merges(files(300, 300), TARGET)) == [["p0", "p1"]]


def test_large_files_are_left_alone() -> None:
    assert plan_merges(files(500, 600, 2000), TARGET) == []


def test_a_merge_ends_at_the_target_size() -> None:
    assert handles(plan_merges(files(400, 400, 400, 400, 400, 400), TARGET)) == [["p0", "p1", "p2"], ["p3", "p4", "p5"]]


def test_files_of_different_partitions_are_not_merged() -> None:
    found = plan_merges(files(300, 300, partition="a") + files(300, 300, partition="b"), TARGET)
    assert handles(found) == [["a0", "a1"], ["b0", "b1"]]


def test_files_are_merged_in_the_order_of_their_offsets() -> None:
    assert handles(plan_merges(reversed(files(300, 300)), TARGET)) == [["p0", "p1"]]
