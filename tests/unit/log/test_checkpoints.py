"""L1: the small text files, as Kafka writes them."""

from __future__ import annotations

import pytest

from tailrace.log.disk import checkpoints
from tailrace.log.disk.checkpoints import CorruptCheckpoint, DirectoryIdentity
from tailrace.model.ids import TopicId, TopicPartition
from tests.support.memory_files import MemoryFiles
from tests.support.small_logs import new_files

PATH = "/data/topic-0/recovery-point-offset-checkpoint"
ID = "AAAAAAAAQACAAAAAAAAAAQ"


def files_with(text: str | bytes) -> MemoryFiles:
    files = new_files()
    files.write(PATH, text.encode() if isinstance(text, str) else text, sync=False)
    return files


def test_l1_an_offset_checkpoint_has_a_version_a_count_and_a_line_per_partition() -> None:
    files = new_files()
    checkpoints.write_offsets(files, PATH, {TopicPartition("orders", 0): 17, TopicPartition("a.b-c", 12): 4})
    assert files.read(PATH) == b"0\n2\norders 0 17\na.b-c 12 4\n"


def test_an_offset_checkpoint_is_read_back() -> None:
    files = files_with("0\n2\norders 0 17\norders 1 4\n")
    assert checkpoints.read_offsets(files, PATH) == {TopicPartition("orders", 0): 17, TopicPartition("orders", 1): 4}


def test_an_empty_offset_checkpoint_has_two_lines() -> None:
    files = new_files()
    checkpoints.write_offsets(files, PATH, {})
    assert files.read(PATH) == b"0\n0\n"
    assert checkpoints.read_offsets(files, PATH) == {}


def test_a_missing_file_and_an_empty_one_have_no_offsets() -> None:
    assert checkpoints.read_offsets(new_files(), PATH) == {}
    assert checkpoints.read_offsets(files_with(""), PATH) == {}


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("1\n0\n", "unknown version '1' in line 1"),
        ("x", "unknown version 'x' in line 1"),
        ("0\n", "no count in line 2"),
        ("0\nmany\n", "no count in line 2"),
        ("0\n2\norders 0 17\n", "the count is 2, but there are 1 entries"),
        ("0\n0\norders 0 17\n", "the count is 0, but there are 1 entries"),
        ("0\n2\norders 0 17\norders 0\n", "malformed line 4: 'orders 0'"),
        ("0\n1\norders 0 17 18\n", "malformed line 3"),
        ("0\n1\norders x 17\n", "malformed line 3"),
        ("0\n1\norders 0 1.5\n", "malformed line 3"),
        (b"\xff\xfe", "not a text file"),
    ],
)
def test_the_error_of_a_malformed_checkpoint_names_file_and_line(text: str | bytes, complaint: str) -> None:
    with pytest.raises(CorruptCheckpoint) as caught:
        checkpoints.read_offsets(files_with(text), PATH)
    assert str(caught.value).startswith(f"{PATH}: ")
    assert complaint in str(caught.value)
    assert caught.value.path == PATH


def test_a_checkpoint_is_replaced_as_a_whole() -> None:
    files = files_with("0\n0\n")
    steps: list[str] = []
    write, replace = files.write, files.replace

    def noting_write(path: str, data: bytes, *, sync: bool) -> None:
        steps.append(f"write {path.rpartition('/')[2]} {sync}")
        write(path, data, sync=sync)

    def noting_replace(source: str, target: str) -> None:
        steps.append("replace")
        replace(source, target)

    files.write, files.replace = noting_write, noting_replace  # type: ignore[method-assign, assignment]
    checkpoints.write_offsets(files, PATH, {TopicPartition("t", 0): 1})
    assert steps == ["write recovery-point-offset-checkpoint.tmp True", "replace"]


def test_l1_partition_metadata_holds_the_topic_id() -> None:
    files = new_files()
    checkpoints.write_topic_id(files, PATH, TopicId.parse(ID))
    assert files.read(PATH) == f"version: 0\ntopic_id: {ID}".encode()
    assert str(checkpoints.read_topic_id(files, PATH)) == ID


@pytest.mark.parametrize(
    "text", ["", "version: 0\n", "version: 1\ntopic_id: " + ID, "version: 0\ntopic_id: short", "topic_id: " + ID]
)
def test_the_error_of_malformed_partition_metadata_names_the_file(text: str) -> None:
    with pytest.raises(CorruptCheckpoint, match=PATH):
        checkpoints.read_topic_id(files_with(text), PATH)


def test_l1_meta_properties_name_cluster_node_and_directory() -> None:
    text = (
        "#\n#Sun Nov 15 22:56:07 UTC 2026\nnode.id=1\ndirectory.id=7ZnSsFnRQHWeFKAlOAGpcw\nversion=1\ncluster.id=CCC\n"
    )
    identity = DirectoryIdentity.read(files_with(text), PATH)
    assert identity == DirectoryIdentity(cluster_id="CCC", node_id=1, directory_id="7ZnSsFnRQHWeFKAlOAGpcw")
    files = new_files()
    identity.write(files, PATH)
    assert files.read(PATH).decode().splitlines() == [
        "#",
        "cluster.id=CCC",
        "directory.id=7ZnSsFnRQHWeFKAlOAGpcw",
        "node.id=1",
        "version=1",
    ]
    assert DirectoryIdentity.read(files, PATH) == identity


@pytest.mark.parametrize(
    "text",
    ["", "version=0\nbroker.id=1\n", "version=1\nnode.id=x\ncluster.id=c\n", "version=1\nnode.id=1\n", b"\xff", "a"],
)
def test_the_error_of_malformed_meta_properties_names_the_file(text: str | bytes) -> None:
    with pytest.raises(CorruptCheckpoint, match=PATH):
        DirectoryIdentity.read(files_with(text), PATH)


def test_l1_the_clean_shutdown_marker_holds_the_broker_epoch() -> None:
    files = new_files()
    checkpoints.write_clean_shutdown(files, PATH, 13)
    assert files.read(PATH) == b'{"version":0,"brokerEpoch":13}'
    assert checkpoints.read_clean_shutdown(files, PATH) == 13


def test_a_stop_without_a_clean_shutdown_marker_was_unclean() -> None:
    assert checkpoints.read_clean_shutdown(new_files(), PATH) is None


@pytest.mark.parametrize("text", ["", "{}", "[]", "nonsense", '{"version":0,"brokerEpoch":"x"}'])
def test_a_marker_without_an_epoch_still_means_a_clean_stop(text: str) -> None:
    assert checkpoints.read_clean_shutdown(files_with(text), PATH) == -1


@pytest.mark.parametrize("number", ["9" * 6_000, "9223372036854775808", "\u0664"])
def test_a_number_that_no_offset_can_be_is_malformed(number: str) -> None:
    for text in (f"0\n{number}\norders 0 1\n", f"0\n1\norders 0 {number}\n"):
        with pytest.raises(CorruptCheckpoint):
            checkpoints.read_offsets(files_with(text), PATH)


@pytest.mark.parametrize("text", ["[" * 100_000, '{"brokerEpoch": 1e999}', '{"brokerEpoch": NaN}', "[]"])
def test_a_malformed_marker_of_a_clean_stop_has_no_epoch(text: str) -> None:
    assert checkpoints.read_clean_shutdown(files_with(text), PATH) == -1
