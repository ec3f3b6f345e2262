"""Repair mends what can be mended, keeps what it cuts, and does on disk what it rehearsed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tailrace.log.directories.data_directory import read_data_directory
from tailrace.log.disk.files import DiskFiles
from tailrace.log.disk.overlay_files import OverlayFiles
from tailrace.log.inspect.repair import RepairPlan, plan_repair, repair_partition
from tailrace.log.inspect.verify import PartitionResult, verify_partition
from tests.support.command import contents, write_directory
from tests.support.golden import golden

NOW_MS = 1_700_000_100_000
FILES = DiskFiles()


def verify(path: Path) -> PartitionResult:
    return verify_partition(FILES, read_data_directory(FILES, str(path)).folders[0], deep=True)


def plan_of(path: Path, *, cut_damaged: bool = False) -> RepairPlan:
    return plan_repair(verify(path), cut_damaged=cut_damaged)


def repair(path: Path, *, cut_damaged: bool = False) -> RepairPlan:
    plan = plan_of(path, cut_damaged=cut_damaged)
    repair_partition(FILES, plan, now_ms=NOW_MS)
    return plan


@pytest.fixture
def partition(tmp_path: Path) -> Path:
    return write_directory(tmp_path / "data", "transactions") / "transactions-0"


def test_the_repair_plan_of_an_intact_log_is_empty(partition: Path) -> None:
    plan = plan_of(partition)
    assert plan.is_empty
    assert plan.left == []


def test_a_torn_tail_is_cut_and_kept(partition: Path) -> None:
    before = contents(partition)
    last = max(partition.glob("*.log"))
    size = last.stat().st_size
    with open(last, "ab") as log:
        log.write(b"half a batch")
    plan = repair(partition)
    assert plan.cut == (int(last.stem), size)
    after = contents(partition)
    assert after.pop(f"{last.name}.{size}.broken") == b"half a batch"
    logs = {name: data for name, data in before.items() if name.endswith((".log", ".txnindex"))}
    assert {name: after[name] for name in logs} == logs
    assert verify(partition).problems == []


def test_a_tail_of_zeros_is_cut_and_not_kept(partition: Path) -> None:
    last = max(partition.glob("*.log"))
    size = last.stat().st_size
    with open(last, "ab") as log:
        log.write(bytes(5000))
    repair(partition)
    assert last.stat().st_size == size
    assert list(partition.glob("*.broken")) == []


@pytest.mark.parametrize("kind", ["index", "timeindex", "txnindex", "snapshot"])
@pytest.mark.parametrize("damage", ["missing", "garbage", "short"])
def test_indexes_and_snapshots_are_rebuilt_from_the_log(kind: str, damage: str, partition: Path) -> None:
    """Indexes of every segment, and snapshots, come back as the log has them; the log itself is not touched."""
    before = contents(partition)
    for file in partition.glob(f"*.{kind}"):
        data = file.read_bytes()
        if damage == "missing":
            file.unlink()
        elif damage == "garbage":
            file.write_bytes(b"\x5a" * len(data))
        else:
            file.write_bytes(data[:-1])
    repair(partition)
    assert verify(partition).problems == []
    after = contents(partition)
    assert {n: d for n, d in after.items() if n.endswith(".log")} == {
        n: d for n, d in before.items() if n.endswith(".log")
    }
    if kind == "txnindex":
        assert {n: d for n, d in after.items() if n.endswith(kind)} == {
            n: d for n, d in before.items() if n.endswith(kind)
        }


def test_leader_epochs_are_rebuilt_and_the_old_file_is_kept(tmp_path: Path) -> None:
    path = golden("leader-epochs").unpack(tmp_path) / "topic-0"
    file = path / "leader-epoch-checkpoint"
    expected = file.read_text()
    file.write_bytes(b"\xff nonsense")
    assert repair(path).rebuild_epochs
    assert file.read_text() == expected
    assert (path / "leader-epoch-checkpoint.broken").read_bytes() == b"\xff nonsense"


def test_offsets_that_overflow_are_split(tmp_path: Path) -> None:
    path = golden("offset-overflow").unpack(tmp_path) / "topic-0"
    expected = golden("offset-overflow").unpack(tmp_path / "kafka", "recovered") / "topic-0"
    repair(path)
    assert {p.name: p.read_bytes() for p in path.glob("*.log")} == {
        p.name: p.read_bytes() for p in expected.glob("*.log")
    }
    assert verify(path).problems == []


def damage_a_batch(partition: Path) -> tuple[Path, int]:
    """Flip a byte in the second batch of the first segment."""
    log = min(partition.glob("*.log"))
    data = bytearray(log.read_bytes())
    second = int.from_bytes(data[8:12], "big") + 12
    data[second + 70] ^= 0xFF
    log.write_bytes(data)
    return log, second


def test_a_damaged_batch_is_left_alone(partition: Path) -> None:
    log, _ = damage_a_batch(partition)
    plan = plan_of(partition)
    assert plan.is_empty
    assert [Path(finding.path) for finding in plan.left] == [log]


def test_with_cut_damaged_a_damaged_batch_ends_the_log_and_its_bytes_are_kept(partition: Path) -> None:
    log, second = damage_a_batch(partition)
    before = contents(partition)
    plan = repair(partition, cut_damaged=True)
    assert plan.left == []
    assert verify(partition).problems == []
    assert log.read_bytes() == before[log.name][:second]
    after = contents(partition)
    assert after[f"{log.name}.{second}.broken"] == before[log.name][second:]
    for name, data in before.items():
        if name.endswith(".log") and name != log.name:
            assert after[f"{name}.broken"] == data


@pytest.mark.parametrize(
    "name",
    ["crashed-torn-tail", "crashed-zero-tail", "crashed-without-indexes", "crashed-preallocated", "offset-overflow"],
)
def test_the_dry_run_reports_the_changes_of_the_real_run(name: str, tmp_path: Path) -> None:
    path = golden(name).unpack(tmp_path) / "topic-0"
    before = contents(path)
    plan = plan_of(path)
    rehearsal = OverlayFiles(FILES)
    repair_partition(rehearsal, plan, now_ms=NOW_MS)
    assert contents(path) == before
    rehearsed = {Path(change.path).name: change.size for change in rehearsal.changes() if change.what != "removed"}
    removed = {Path(change.path).name for change in rehearsal.changes() if change.what == "removed"}
    repair_partition(FILES, plan, now_ms=NOW_MS)
    after = contents(path)
    changed = {name: len(data) for name, data in after.items() if before.get(name) != data}
    assert changed == {name: size for name, size in rehearsed.items() if before.get(name) != after.get(name)}
    assert removed == before.keys() - after.keys()


def test_damage_that_cannot_be_repaired_is_left_and_reported(partition: Path) -> None:
    (partition / "partition.metadata").write_bytes(b"\xff")
    plan = plan_of(partition)
    assert plan.is_empty
    assert [Path(finding.path).name for finding in plan.left] == ["partition.metadata"]


def test_checkpoints_past_the_end_are_lowered(partition: Path) -> None:
    checkpoint = partition.parent / "replication-offset-checkpoint"
    end = verify(partition).end_offset
    checkpoint.write_text("0\n2\nother 0 5000\ntransactions 0 9000\n")
    plan = repair(partition)
    assert plan.lower_checkpoints
    assert checkpoint.read_text() == f"0\n2\nother 0 5000\ntransactions 0 {end}\n"
    assert verify(partition).problems == []
