"""The rows of small files, and of damaged ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from tailrace.log.disk.checkpoints import CorruptCheckpoint
from tailrace.log.disk.files import DiskFiles
from tailrace.log.inspect.dump import Row, dump_small_file, kind_of
from tailrace.log.producers.producer_snapshot import CorruptSnapshot
from tailrace.log.segments.indexes.index_file import CorruptIndex
from tests.support.golden import golden


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return golden("broker-clean").unpack(tmp_path_factory.mktemp("broker"))


def rows(path: Path) -> list[Row]:
    return list(dump_small_file(DiskFiles(), str(path)))


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("00000000000000000017.log", "log"),
        ("00000000000000000017.index.deleted", "index"),
        ("00000000000000000017.timeindex", "timeindex"),
        ("00000000000000000017.txnindex.swap", "txnindex"),
        ("00000000000000000017.snapshot", "snapshot"),
        ("00000000000000000017-0000000003.checkpoint", "log"),
        ("bootstrap.checkpoint", "log"),
        ("leader-epoch-checkpoint", "checkpoint"),
        ("replication-offset-checkpoint", "checkpoint"),
        ("meta.properties", "checkpoint"),
        ("notes.txt", None),
        (".lock", None),
    ],
)
def test_files_are_known_by_their_names(name: str, kind: str | None) -> None:
    assert kind_of(name) == kind


def test_checkpoints_and_properties_are_dumped_as_rows(broker: Path) -> None:
    assert rows(broker / "orders-0" / "leader-epoch-checkpoint") == [Row("leaderEpoch", {"epoch": 0, "startOffset": 0})]
    assert Row("offset", {"topic": "audit", "partition": 0, "offset": 22}) in rows(
        broker / "log-start-offset-checkpoint"
    )
    assert Row("property", {"name": "node.id", "value": "1"}) in rows(broker / "meta.properties")
    assert Row("property", {"name": "version", "value": 0}) in rows(broker / ".kafka_cleanshutdown")
    assert [row.fields["name"] for row in rows(broker / "orders-0" / "partition.metadata")] == ["version", "topic_id"]
    assert "leaderId" in {row.fields["name"] for row in rows(broker / "__cluster_metadata-0" / "quorum-state")}


def test_padding_is_not_shown_as_an_entry(tmp_path: Path) -> None:
    index = tmp_path / "00000000000000000100.index"
    index.write_bytes(bytes.fromhex("0000000500000200") + bytes(1000))
    assert rows(index) == [Row("indexEntry", {"offset": 105, "position": 512})]
    index.write_bytes(bytes(800))
    assert rows(index) == []


def test_an_incomplete_entry_is_reported_after_the_whole_ones(tmp_path: Path) -> None:
    index = tmp_path / "00000000000000000100.timeindex"
    index.write_bytes(bytes.fromhex("000000000000000700000002") + b"\1\2\3")
    assert rows(index) == [
        Row("timeIndexEntry", {"timestamp": 7, "offset": 102}),
        Row("invalidBytes", {"size": 3, "position": 12}),
    ]


def test_corrupt_files_are_reported(tmp_path: Path) -> None:
    for name, error in (
        ("00000000000000000100.txnindex", CorruptIndex),
        ("00000000000000000100.snapshot", CorruptSnapshot),
        ("leader-epoch-checkpoint", CorruptCheckpoint),
        ("recovery-point-offset-checkpoint", CorruptCheckpoint),
    ):
        (tmp_path / name).write_bytes(b"\x7f" * 40)
        with pytest.raises(error, match=name):
            rows(tmp_path / name)
