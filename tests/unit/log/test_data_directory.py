"""The folders of a data directory, known by their names and checkpoints."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tailrace.log.directories.data_directory import NotADataDirectory, read_data_directory
from tailrace.log.disk.files import DiskFiles
from tests.support.golden import golden


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return golden("broker-clean").unpack(tmp_path_factory.mktemp("broker"))


def test_the_folders_and_checkpoints_of_a_broker_are_found(broker: Path) -> None:
    directory = read_data_directory(DiskFiles(), str(broker))
    names = [str(folder.partition) for folder in directory.folders if not folder.mark]
    assert names == sorted(names)
    assert {"orders-0", "orders-1", "payments-0", "users-0", "__cluster_metadata-0"} <= set(names)
    assert directory.is_clean
    assert directory.identity is not None
    assert directory.identity.node_id == 1
    assert directory.findings == []
    audit = next(folder for folder in directory.folders if folder.name == "audit-0")
    assert (audit.log_start_offset, audit.high_watermark, audit.recovery_point) == (22, 40, 40)
    users = next(folder for folder in directory.folders if folder.name == "users-0")
    assert users.cleaned_to == 21


def test_a_deleted_folder_is_marked_and_has_no_checkpoints(broker: Path) -> None:
    gone = next(folder for folder in read_data_directory(DiskFiles(), str(broker)).folders if folder.mark)
    assert (gone.partition.topic, gone.mark, gone.high_watermark, gone.is_clean) == ("gone", "deleted", None, False)


def test_the_partitions_of_shards_are_those_of_one_directory(broker: Path, tmp_path: Path) -> None:
    for number in (1, 2):
        shutil.copytree(broker, tmp_path / f"shard{number}")
    (tmp_path / "shard2" / ".kafka_cleanshutdown").unlink()
    (tmp_path / "shards.json").write_text('{"shards": 3}')  # the third has not been started yet
    alone, together = (read_data_directory(DiskFiles(), str(path)) for path in (broker, tmp_path))
    assert len(together.folders) == 2 * len(alone.folders)
    assert {one.path.split("/")[-2] for one in together.folders} == {"shard1", "shard2"}
    assert not together.is_clean
    assert together.identity == alone.identity
    assert together.checkpoints == alone.checkpoints
    (tmp_path / "shards.json").write_text("{}")
    with pytest.raises(NotADataDirectory, match="is damaged"):
        read_data_directory(DiskFiles(), str(tmp_path))


def test_a_single_partition_folder_uses_the_checkpoints_of_its_parent(broker: Path) -> None:
    directory = read_data_directory(DiskFiles(), str(broker / "audit-0"))
    assert [folder.name for folder in directory.folders] == ["audit-0"]
    assert directory.folders[0].log_start_offset == 22
    assert directory.path == str(broker)


def test_a_corrupt_checkpoint_is_a_finding_and_counts_as_missing(tmp_path: Path) -> None:
    path = golden("broker-clean").unpack(tmp_path)
    (path / "replication-offset-checkpoint").write_text("0\n3\norders 0 17\n")
    (path / "log-start-offset-checkpoint").write_bytes(b"\xff\xfe")
    (path / "meta.properties").write_text("version=9\n")
    directory = read_data_directory(DiskFiles(), str(path))
    assert [Path(finding.path).name for finding in directory.findings] == [
        "log-start-offset-checkpoint",
        "replication-offset-checkpoint",
        "meta.properties",
    ]
    assert all(folder.high_watermark is None for folder in directory.folders)
    assert any(folder.recovery_point is not None for folder in directory.folders)


def test_a_folder_that_is_not_a_data_directory_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NotADataDirectory, match="is not a data directory"):
        read_data_directory(DiskFiles(), str(tmp_path))
    (tmp_path / "misnamed").mkdir()
    (tmp_path / "misnamed" / "00000000000000000000.log").touch()
    with pytest.raises(NotADataDirectory, match="its name is not that of a partition"):
        read_data_directory(DiskFiles(), str(tmp_path / "misnamed"))
    with pytest.raises(FileNotFoundError):
        read_data_directory(DiskFiles(), str(tmp_path / "nowhere"))


def test_a_new_directory_without_partitions_is_a_data_directory(tmp_path: Path) -> None:
    (tmp_path / "meta.properties").write_text("version=1\ncluster.id=c\nnode.id=3\ndirectory.id=d\n")
    assert read_data_directory(DiskFiles(), str(tmp_path)).folders == []
