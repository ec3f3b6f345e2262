from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.command import tailrace, write_directory
from tests.support.golden import golden, golden_names


@pytest.mark.parametrize("name", golden_names("data_dir"))
def test_verify_of_an_intact_directory_has_status_0(name: str, tmp_path: Path) -> None:
    ran = tailrace("log", "verify", golden(name).unpack(tmp_path), "--deep")
    assert (ran.status, ran.err) == (0, "")
    assert ran.lines[-1].startswith("no problems in 9 partitions")


def test_verify_reports_file_and_position_of_problems_with_status_1(tmp_path: Path) -> None:
    path = write_directory(tmp_path / "data", "plain", "idempotent")
    logs = sorted((path / "plain-0").glob("*.log"))
    data = bytearray(logs[0].read_bytes())
    data[70] ^= 0xFF
    logs[0].write_bytes(data)
    next((path / "idempotent-0").glob("*.timeindex")).unlink()
    ran = tailrace("log", "verify", path)
    assert ran.status == 1
    assert f"{logs[0]} at position 0: " in ran.out
    assert ".timeindex: is missing" in ran.out
    assert ran.lines[-2].startswith("2 problems in 2 partitions")
    assert ran.lines[-1] == f"`tailrace log repair {path}` lists possible repairs"
    document = tailrace("log", "verify", path, "--json").json
    assert {(problem["file"], problem["position"]) for problem in document["problems"]} >= {(str(logs[0]), 0)}
    assert {partition["name"]: partition["problems"] for partition in document["partitions"]} == {
        "idempotent-0": 1,
        "plain-0": 1,
    }


def test_a_corrupt_checkpoint_is_a_problem(tmp_path: Path) -> None:
    path = write_directory(tmp_path / "data", "plain")
    (path / "recovery-point-offset-checkpoint").write_bytes(b"\xff")
    ran = tailrace("log", "verify", path)
    assert ran.status == 1
    assert "recovery-point-offset-checkpoint: not a text file" in ran.out


def test_verify_skips_folders_marked_for_deletion(tmp_path: Path) -> None:
    path = write_directory(tmp_path / "data", "plain", "idempotent")
    (path / "plain-0").rename(path / "plain-0.0123456789abcdef0123456789abcdef-delete")
    next(path.glob("plain-0.*-delete/*.index")).unlink()
    assert tailrace("log", "verify", path).status == 0
