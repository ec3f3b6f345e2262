"""Hostile input that ends at a guard page: no compiled kernel reads past it or differs from the interpreted one."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

import tailrace
from tailrace.records import kernels
from tests.property.guarded_kernels import KERNELS

ROOT = Path(__file__).parents[2]
pytestmark = [
    pytest.mark.skipif(not kernels.COMPILED, reason="the kernels were not compiled here"),
    pytest.mark.skipif(sys.platform != "linux", reason="guard pages are made with Linux's mprotect"),
]


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-X", "faulthandler", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=1200)


@pytest.mark.parametrize(("position", "status"), [(-1, 0), (0, -signal.SIGSEGV)])
def test_a_read_past_the_end_ends_the_process(position: int, status: int) -> None:
    code = f"""
import ctypes
from tests.support.guarded_memory import GuardedMemory
memory = GuardedMemory(10)
text = memory.guarded_bytes(b"forged bytes")
assert text == b"forged bytes" and bytes(memory.room(5)) == b"bytes"
ctypes.string_at(memory.end + {position}, 1)
"""
    assert run("-c", code).returncode == status


def check(name: str, seed: str, count: int, note: Path) -> None:
    done = run("-m", "tests.property.guarded_kernels", name, seed, str(count), str(note))
    command = f"python -m tests.property.guarded_kernels {name} {seed} {count} NOTE"
    assert done.returncode == 0, f"input {note.read_text()} of `{command}`: {done.stderr[-3000:]}"
    assert note.read_text() == str(count - 1)


def test_every_kernel_gets_hostile_input() -> None:
    source = Path(tailrace.__file__).parent
    kernels_here = {".".join(path.relative_to(source.parent).with_suffix("").parts) for path in source.rglob("*.pxd")}
    assert kernels_here == {module.__name__ for modules, _ in KERNELS.values() for module in modules}


@pytest.mark.parametrize("name", KERNELS)
def test_a_kernel_stays_within_hostile_input(name: str, tmp_path: Path) -> None:
    check(name, "1", 300, tmp_path / "note")


@pytest.mark.slow
@pytest.mark.parametrize("name", KERNELS)
def test_a_kernel_stays_within_much_hostile_input(name: str, tmp_path: Path) -> None:
    check(name, "2", 5_000, tmp_path / "note")
