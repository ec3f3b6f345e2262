from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from pathlib import Path

from tests.support.command import contents, tailrace, write_directory
from tests.support.golden import golden


def torn(tmp_path: Path) -> Path:
    path = write_directory(tmp_path / "data", "plain", "idempotent")
    with open(max((path / "plain-0").glob("*.log")), "ab") as log:
        log.write(b"half a batch")
    next((path / "idempotent-0").glob("*.index")).unlink()
    return path


def test_repair_without_yes_lists_repairs_and_changes_nothing(tmp_path: Path) -> None:
    path = torn(tmp_path)
    before = contents(path)
    for arguments in ([], ["--dry-run"]):
        ran = tailrace("log", "repair", path, *arguments)
        assert ran.status == 1
        assert contents(path) == before
        assert any("is cut from" in line for line in ran.lines)
        assert any(".broken is written, 12 B" in line for line in ran.lines)
        assert any(".index is written" in line for line in ran.lines)
        assert ran.lines[-1] == "2 partitions can be repaired; nothing was changed. Add --yes to repair"


def test_repair_with_yes_leaves_no_problems(tmp_path: Path) -> None:
    path = torn(tmp_path)
    ran = tailrace("log", "repair", path, "--yes")
    assert (ran.status, ran.lines[-1]) == (0, "2 partitions repaired")
    assert tailrace("log", "verify", path, "--deep").status == 0
    assert tailrace("log", "repair", path).lines[-1] == "nothing to repair"
    assert [file.read_bytes() for file in path.rglob("*.broken")] == [b"half a batch"]


def test_a_repair_that_lowers_checkpoints_exits_with_0(tmp_path: Path) -> None:
    path = write_directory(tmp_path / "data", "plain")
    log = max((path / "plain-0").glob("*.log"))
    os.truncate(log, log.stat().st_size - 5)
    ran = tailrace("log", "repair", path, "--yes")
    assert "recovery-point-offset-checkpoint is rewritten" in ran.out
    assert (ran.status, ran.lines[-1]) == (0, "1 partition repaired")
    assert tailrace("log", "verify", path).status == 0


def test_repair_as_json_lists_the_changes(tmp_path: Path) -> None:
    path = torn(tmp_path)
    document = tailrace("log", "repair", path, "--json").json
    assert document["done"] is False
    changes = {(Path(c["file"]).suffix, c["change"]) for p in document["partitions"] for c in p["changes"]}
    assert (".log", "cut") in changes
    assert (".broken", "created") in changes
    assert tailrace("log", "repair", path, "--json", "--yes").json["done"] is True


def test_a_damaged_batch_is_cut_only_with_cut_damaged(tmp_path: Path) -> None:
    path = golden("crashed-bad-crc").unpack(tmp_path)
    before = contents(path)
    ran = tailrace("log", "repair", path, "--yes")
    assert ran.status == 1
    assert contents(path) == before
    assert "--cut-damaged" in ran.out
    assert tailrace("log", "repair", path, "--yes", "--cut-damaged").status == 0
    assert tailrace("log", "verify", path).status == 0
    assert (path / "topic-0" / "00000000000000000000.log.160.broken").exists()


def test_problems_that_cannot_be_repaired_are_reported_and_left(tmp_path: Path) -> None:
    path = write_directory(tmp_path / "data", "plain")
    (path / "plain-0" / "partition.metadata").write_bytes(b"\xff")
    next((path / "plain-0").glob("*.index")).unlink()
    before = contents(path)
    ran = tailrace("log", "repair", path)
    assert ran.status == 1
    assert "partition.metadata" in ran.out
    assert contents(path) == before


def test_repair_of_a_directory_in_use_is_refused(tmp_path: Path) -> None:
    path = torn(tmp_path)
    before = contents(path)
    with open(path / ".lock", "a") as lock:
        fcntl.lockf(lock, fcntl.LOCK_EX)
        for arguments in ([], ["--yes"]):
            # A lock does not exclude the process that holds it, so the command runs in another process.
            done = subprocess.run(
                [sys.executable, "-m", "tailrace", "log", "repair", str(path), *arguments],
                capture_output=True,
                text=True,
                timeout=60,
                check=False,
            )
            assert (done.returncode, done.stdout) == (2, "")
            assert done.stderr == f"tailrace: {path} is in use: a broker holds its .lock. Stop the broker first\n"
    assert contents(path) == before


def test_repair_of_a_single_partition_folder_creates_no_lock(tmp_path: Path) -> None:
    path = golden("crashed-torn-tail").unpack(tmp_path)
    assert tailrace("log", "repair", path / "topic-0", "--yes").status == 0
    assert not (path / ".lock").exists()
