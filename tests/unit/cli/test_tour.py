from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.support.command import contents, tailrace


def test_the_tour_shows_every_chapter_and_writes_an_intact_log(tmp_path: Path) -> None:
    ran = tailrace("tour", tmp_path / "tour")
    assert (ran.status, ran.err) == (0, "")
    titles = [line for line, under in zip(ran.lines, ran.lines[1:], strict=False) if under and set(under) == {"─"}]
    assert [title[0] for title in titles] == ["1", "2", "3", "4", "5", "6", "T"]
    assert all(len(line) <= 140 for line in ran.lines if str(tmp_path) not in line)
    assert "404 batches: no problems" in ran.out
    assert "10,020 records, 10,010 of them committed" in ran.out
    assert tailrace("log", "verify", tmp_path / "tour", "--deep").status == 0


def test_every_command_that_the_tour_suggests_works(tmp_path: Path) -> None:
    ran = tailrace("tour", tmp_path / "tour")
    proposals = [
        line.split() for line in ran.lines if line.startswith("  ") and " log " in line and str(tmp_path) in line
    ]
    assert len(proposals) == 6
    for _, *arguments in proposals:
        assert tailrace(*arguments).status == 0


def test_two_tours_write_the_same_files(tmp_path: Path) -> None:
    tailrace("tour", tmp_path / "a")
    tailrace("tour", tmp_path / "b")
    assert contents(tmp_path / "a") == contents(tmp_path / "b")


def test_the_tour_refuses_a_directory_that_is_not_empty(tmp_path: Path) -> None:
    (tmp_path / "mine").touch()
    ran = tailrace("tour", tmp_path)
    assert ran.status == 2
    assert "is not empty" in ran.err


def test_the_tour_without_a_directory_creates_a_temporary_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert tailrace("tour").status == 0
    made = list(tmp_path.iterdir())
    assert [path.name.startswith("tailrace-tour-") for path in made] == [True]
    shutil.rmtree(made[0])
