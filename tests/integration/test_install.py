"""Installing Tailrace where there is no C compiler: the kernels stay interpreted and everything works."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PXD_FILES = sorted(path.relative_to(ROOT) for path in (ROOT / "src").rglob("*.pxd"))


def environment_without_compiler(**more: str) -> dict[str, str]:
    """Return an environment in which neither CC nor the PATH leads to a C compiler."""
    return {"HOME": os.environ.get("HOME", "/"), "PATH": "/nonexistent", "CC": "/nonexistent/cc", **more}


def run(*command: str | Path, directory: Path, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, *map(str, command)],
        cwd=directory,
        env=environment_without_compiler(**environment),
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_setup_builds_every_kernel_and_needs_no_compiler(tmp_path: Path) -> None:
    shutil.copy(ROOT / "setup.py", tmp_path)
    for name in PXD_FILES:
        for directory in (parent for parent in name.parents if "tailrace" in parent.parts):
            (tmp_path / directory).mkdir(parents=True, exist_ok=True)
            (tmp_path / directory / "__init__.py").touch()
        (tmp_path / name).with_suffix(".py").write_text("ANSWER = 42\n")
    output = run("setup.py", "build_ext", "--build-lib", "built", directory=tmp_path)
    for name in PXD_FILES:
        module = ".".join(name.with_suffix("").parts[1:])
        assert f'building extension "{module}" failed' in output


def test_the_makefile_names_every_kernel() -> None:
    text = (ROOT / "Makefile").read_text().replace("\\\n", " ")
    names = next(line for line in text.splitlines() if line.startswith("KERNELS :=")).split()[2:]
    assert sorted(names) == [str(name.with_suffix("")) for name in PXD_FILES]


@pytest.mark.slow
def test_pip_installs_without_a_compiler_and_the_log_works(tmp_path: Path) -> None:
    source = tmp_path / "source"
    shutil.copytree(ROOT / "src", source / "src", ignore=shutil.ignore_patterns("*.so", "*.c", "*.egg-info"))
    for name in ("setup.py", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    installed = tmp_path / "installed"
    options = ("--no-build-isolation", "--no-deps", "--no-index", "--target", installed)
    run("-m", "pip", "install", "--quiet", *options, source, directory=tmp_path)
    assert list(installed.rglob("*.so")) == []
    modules = [".".join(name.with_suffix("").parts[1:]) for name in PXD_FILES]
    looks = f"""
import importlib
for name in {modules}:
    module = importlib.import_module(name)
    assert module.__file__.startswith({str(installed)!r}), module.__file__
    assert not module.COMPILED, name
"""
    run("-c", looks, directory=tmp_path, PYTHONPATH=str(installed))
    assert "offset" in run("-m", "tailrace.cli.main", "tour", directory=tmp_path, PYTHONPATH=str(installed))
