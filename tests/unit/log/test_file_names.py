"""L1: every name in a log directory, as Kafka spells it."""

from __future__ import annotations

import pytest

from tailrace.log.disk import file_names
from tailrace.model.ids import TopicPartition


def test_l1_segment_files_are_named_by_their_base_offset_in_twenty_digits() -> None:
    assert file_names.segment_file(170_000, file_names.LOG) == "00000000000000170000.log"
    assert file_names.segment_file(0, file_names.TIME_INDEX, file_names.SWAP) == "00000000000000000000.timeindex.swap"
    assert file_names.segment_file(2**63 - 1, file_names.LOG) == "09223372036854775807.log"


@pytest.mark.parametrize("kind", [".log", ".index", ".timeindex", ".txnindex", ".snapshot"])
@pytest.mark.parametrize("suffix", ["", ".cleaned", ".swap", ".deleted"])
def test_a_segment_file_name_is_read_back(kind: str, suffix: str) -> None:
    assert file_names.parse_segment_file(f"00000000000000000042{kind}{suffix}") == (42, kind, suffix)


@pytest.mark.parametrize(
    "name",
    [
        "leader-epoch-checkpoint",
        "42.log",
        "00000000000000000042.log.broken",
        "00000000000000000042.log.deleted.deleted",
        "00000000000000000042-0000000001.checkpoint",
        "00000000000000000042.logs",
        "00000000000000000042.log\n",
        "0000000000000000004२.log",
        "09223372036854775807.log",
        "99999999999999999999.log",
    ],
)
def test_other_files_are_not_segment_files(name: str) -> None:
    assert file_names.parse_segment_file(name) is None


@pytest.mark.parametrize(
    ("name", "partition"),
    [
        ("orders-0", TopicPartition("orders", 0)),
        ("my-topic-with-dashes-17", TopicPartition("my-topic-with-dashes", 17)),
        ("a.b_c-3", TopicPartition("a.b_c", 3)),
        ("__consumer_offsets-49", TopicPartition("__consumer_offsets", 49)),
        ("orders-0.0123456789abcdef0123456789abcdef-delete", TopicPartition("orders", 0)),
        ("my-topic-12.0123456789abcdef0123456789abcdef-stray", TopicPartition("my-topic", 12)),
    ],
)
def test_l1_a_folder_belongs_to_the_partition_it_is_named_after(name: str, partition: TopicPartition) -> None:
    assert file_names.parse_partition_folder(name) == partition


@pytest.mark.parametrize(
    "name",
    [
        "orders",
        "-0",
        "orders-",
        "orders-x",
        "orders-1a",
        "lost+found",
        "orders-²",
        "orders-2147483648",
        "or ders-0",
        "or\nders-0",
    ],
)
def test_a_folder_with_another_name_is_not_a_partition_folder(name: str) -> None:
    assert file_names.parse_partition_folder(name) is None


def test_the_name_of_a_deleted_folder_has_a_unique_id_and_a_mark() -> None:
    marked = file_names.marked_folder(TopicPartition("orders", 3), "f" * 32, file_names.DELETE_FOLDER)
    assert marked == "orders-3.ffffffffffffffffffffffffffffffff-delete"
    assert file_names.is_marked(marked, file_names.DELETE_FOLDER)
    assert not file_names.is_marked(marked, file_names.STRAY_FOLDER)


def test_a_topic_whose_name_ends_like_a_mark_is_not_marked() -> None:
    assert not file_names.is_marked("to-delete", file_names.DELETE_FOLDER)


def test_a_long_topic_is_cut_so_that_its_marked_folder_fits_a_file_name() -> None:
    partition = TopicPartition("t" * 249, 12)
    marked = file_names.marked_folder(partition, "f" * 32, file_names.STRAY_FOLDER)
    assert len(marked) == 255
    assert marked.endswith(f"-12.{'f' * 32}-stray")
