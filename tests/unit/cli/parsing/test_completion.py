from __future__ import annotations

import subprocess
import sys
from shutil import which

import pytest

from tests.support.command import tailrace


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_a_completion_script_is_printed(shell: str) -> None:
    pytest.importorskip("shtab")
    ran = tailrace("completion", shell)
    assert ran.status == 0
    assert "reassign" in ran.out
    assert "--bootstrap" in ran.out
    if which(shell):
        assert subprocess.run([shell, "-n"], input=ran.out, text=True, timeout=30, check=False).returncode == 0


def test_without_shtab_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "shtab", None)
    ran = tailrace("completion", "bash")
    assert (ran.status, ran.out, ran.err.count("\n")) == (2, "", 1)
    assert "pip install 'tailrace[completion]'" in ran.err


def test_without_pyarrow_the_extra_of_object_stores_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    ran = tailrace("log", "ls", "s3://bucket/data")
    assert (ran.status, ran.out, ran.err.count("\n")) == (2, "", 1)
    assert "pip install 'tailrace[s3]'" in ran.err
