"""Files on a system without preadv, posix_fallocate and fdatasync."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tailrace.log.disk import files as files_module
from tailrace.log.disk.files import DiskFiles


@pytest.fixture(autouse=True)
def portable(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PREADV", "FALLOCATE", "FDATASYNC"):
        monkeypatch.setattr(files_module, f"_HAS_{name}", False)
    for call in ("preadv", "posix_fallocate", "fdatasync"):
        monkeypatch.delattr(os, call, raising=False)


def test_a_file_is_read_allocated_and_synced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", synced.append)
    file = DiskFiles().open(str(tmp_path / "a"), create=True)
    file.write(0, b"0123456789")
    file.sync()
    assert synced == [file.fileno()]
    buffer = bytearray(8)
    assert file.read_into(4, memoryview(buffer)) == 6
    assert buffer == b"456789\0\0"
    file.allocate(16)
    assert file.read(0, 99) == b"0123456789" + bytes(6)
    file.allocate(4)
    assert file.size() == 16
    file.close()


@pytest.mark.parametrize("is_known", [True, False])
def test_the_full_sync_of_macos_is_preferred(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_known: bool) -> None:
    calls: list[str] = []

    def full_sync(descriptor: int, command: int) -> int:
        calls.append(f"fcntl {command}")
        if not is_known:
            raise OSError("not supported")
        return 0

    monkeypatch.setattr(files_module, "_FULL_SYNC", 51)
    monkeypatch.setattr(files_module.fcntl, "fcntl", full_sync)
    monkeypatch.setattr(os, "fsync", lambda descriptor: calls.append("fsync"))
    file = DiskFiles().open(str(tmp_path / "a"), create=True)
    file.sync()
    assert calls == (["fcntl 51"] if is_known else ["fcntl 51", "fsync"])
    file.close()
