"""On damaged files every `log` command ends with status 0, 1 or 2, without a traceback, and changes no file.

Each case takes a directory that Kafka wrote and damages some of its files: a flipped bit, a cut, random bytes inside or
at the end, only random bytes, or a deleted file. Then it runs every command on the directory, and finally a repair.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.support.command import contents, tailrace
from tests.support.golden import golden, golden_names


def damage(file: Path, dice: random.Random) -> None:
    data = bytearray(file.read_bytes())
    place = dice.randrange(len(data) + 1)
    match dice.randrange(6):
        case 0 if place < len(data):
            data[place] ^= 1 << dice.randrange(8)
        case 1:
            del data[place:]
        case 2:
            data += dice.randbytes(dice.choice([1, 7, 61, 500]))
        case 3:
            data = bytearray(dice.randbytes(len(data) or 20))
        case 4:
            data[place : place + dice.choice([1, 4, 8, 30])] = dice.randbytes(8)
        case _:
            file.unlink()
            return
    file.write_bytes(data)


def commands(path: Path, dice: random.Random) -> list[list[object]]:
    folder = dice.choice(sorted(entry for entry in path.iterdir() if entry.is_dir()))
    offset, time = dice.randrange(60), 1_700_000_000_000 + dice.randrange(500)
    return [
        ["ls", path, "--segments"],
        ["ls", path, "--json"],
        ["cat", path],
        ["cat", path, "--isolation", "read_committed", "--json", "--more"],
        ["cat", path, "--from-timestamp", time],
        ["dump", path, "--print-data"],
        ["dump", path, "--records", "--json"],
        ["verify", path, "--deep"],
        ["verify", path, "--json"],
        ["explain", folder, "--offset", offset],
        ["explain", folder, "--offset", offset, "--isolation", "read_committed", "--json"],
        ["explain", folder, "--timestamp", time],
        ["repair", path],
        ["repair", path, "--cut-damaged"],
    ]


def assert_answers(seed: int, tmp_path: Path) -> None:
    dice = random.Random(seed)
    path = golden(dice.choice(golden_names())).unpack(tmp_path / "data")
    files = sorted(file for file in path.rglob("*") if file.is_file())
    for file in dice.sample(files, min(len(files), dice.choice([1, 1, 2, 4]))):
        damage(file, dice)
    before = contents(path)
    for arguments in commands(path, dice):
        ran = tailrace("log", *arguments)
        assert ran.status in (0, 1, 2), (arguments, ran.err)
        assert "Traceback" not in ran.err + ran.out
    assert contents(path) == before
    ran = tailrace("log", "repair", path, "--cut-damaged", "--yes")
    assert ran.status in (0, 1, 2), ran.err
    again = tailrace("log", "verify", path, "--deep")
    assert again.status in (0, 1)
    if ran.status == 0:
        assert again.status == 0, again.out


@pytest.mark.long
@pytest.mark.parametrize("seed", range(24))
def test_commands_on_a_damaged_directory_end_without_traceback(seed: int, tmp_path: Path) -> None:
    assert_answers(seed, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1000, 1400))
def test_commands_on_many_damaged_directories_end_without_traceback(seed: int, tmp_path: Path) -> None:
    assert_answers(seed, tmp_path)


@pytest.mark.parametrize("verb", ["ls", "cat", "verify", "dump", "repair"])
def test_commands_survive_files_and_folders_in_each_others_place(verb: str, tmp_path: Path) -> None:
    path = golden("broker-clean").unpack(tmp_path)
    (path / "orders-0" / "leader-epoch-checkpoint").unlink()
    (path / "orders-0" / "leader-epoch-checkpoint").mkdir()
    (path / "replication-offset-checkpoint").unlink()
    (path / "replication-offset-checkpoint").mkdir()
    log = path / "payments-0" / "00000000000000000005.log"
    log.unlink()
    log.mkdir()
    (path / "fake-0").write_text("no folder")
    ran = tailrace("log", verb, path)
    assert ran.status in (0, 1)
    assert "Traceback" not in ran.err + ran.out
    assert verb == "repair" or "orders-1" in ran.out


def test_a_configuration_without_end_is_refused() -> None:
    for words in (("serve", "--config", "/dev/zero"), ("topics", "list", "--command-config", "/dev/zero")):
        ran = tailrace(*words)
        assert (ran.status, ran.out) == (2, "")
        assert "/dev/zero is larger than 16,777,216 bytes" in ran.err


def test_a_listener_whose_host_cannot_be_a_name_is_refused(tmp_path: Path) -> None:
    ran = tailrace("serve", "--data", tmp_path, "--host", "x" * 64, "--port", "0")
    assert ran.status == 2
    assert "the host cannot be a name" in ran.err
