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


def test_a_larger_file_is_merged_only_if_it_at_most_doubles_the_result() -> None:
    target = 100_000
    small = [10] * ENOUGH_FILES
    assert len(plan_merges(files(*small, 80, 160), target)[0]) == ENOUGH_FILES + 2
    assert len(plan_merges(files(*small, 81, 160), target)[0]) == ENOUGH_FILES


def test_rows_are_rewritten_a_logarithmic_number_of_times() -> None:
    """Rounds of one byte each: the sizes of all merges together stay below log2 of the target size for each round."""
    target, rounds, rewritten = 4096, 4096, 0
    sizes: list[int] = []
    most = 0
    for number in range(rounds):
        sizes.append(1)
        if number % 8 == 7:
            for group in plan_merges(files(*sizes), target):
                merged = [file.size for file in group]
                rewritten += sum(merged)
                for size in merged:
                    sizes.remove(size)
                sizes.append(sum(merged))
        most = max(most, len([size for size in sizes if size < target / 2]))
    assert rewritten < 12 * rounds
    assert most < 3 * ENOUGH_FILES
    assert max(sizes) >= target / 2
