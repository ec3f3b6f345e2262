"""Installing Tailrace from its packages, with and without a C compiler: without one the kernels stay interpreted.

The packages come from this source. Each is installed in a new environment that finds the dependencies where this Python
has them, and `scripts/smoke_test.py` is run there.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tomllib
import venv
from collections.abc import Callable
from importlib.metadata import requires
from pathlib import Path
from runpy import run_path

import pytest
from packaging.requirements import Requirement

from scripts import check_distribution, make_distribution
from tailrace.model.kernel_forms import KERNELS

ROOT = Path(__file__).parents[2]
PXD_FILES = sorted(path.relative_to(ROOT) for path in (ROOT / "src").rglob("*.pxd"))


def environment_without_compiler() -> dict[str, str]:
    """Return an environment in which neither CC nor the PATH leads to a C compiler."""
    return {"HOME": os.environ.get("HOME", "/"), "PATH": "/nonexistent", "CC": "/nonexistent/cc"}


def environment_with_compiler() -> dict[str, str]:
    """Return an environment with the C compiler of the machine, for a quick build."""
    found = shutil.which("cc") or shutil.which("gcc")
    if found is None:
        pytest.skip("this machine has no C compiler")
    return {"HOME": os.environ.get("HOME", "/"), "PATH": os.environ["PATH"], "CFLAGS": "-O0"}


def run(*command: str | Path, directory: Path, environment: dict[str, str] | None = None) -> str:
    """Run this Python, without a compiler unless an environment is given. Return its output."""
    done = subprocess.run(
        [sys.executable, *map(str, command)],
        cwd=directory,
        env=environment_without_compiler() if environment is None else environment,
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.fixture
def small_source(tmp_path: Path) -> Path:
    """Return a copy of setup.py and of the kernels' names, with a line of Python for each kernel."""
    shutil.copy(ROOT / "setup.py", tmp_path)
    (tmp_path / "src/tailrace/model").mkdir(parents=True)
    shutil.copy(ROOT / "src/tailrace/model/kernel_forms.py", tmp_path / "src/tailrace/model")
    for name in PXD_FILES:
        for directory in (parent for parent in name.parents if "tailrace" in parent.parts):
            (tmp_path / directory).mkdir(parents=True, exist_ok=True)
            (tmp_path / directory / "__init__.py").touch()
        (tmp_path / name).with_suffix(".py").write_text("ANSWER = 42\n")
    (tmp_path / "src/tailrace/__init__.py").write_text('__version__ = "1.0"\n')
    (tmp_path / "README.md").touch()
    return tmp_path


BUILD_KERNELS = ("setup.py", "build_ext", "--build-lib", "built")


def test_setup_builds_every_kernel_and_needs_no_working_compiler(small_source: Path) -> None:
    environment = {**environment_without_compiler(), "CC": shutil.which("false") or "/bin/false"}
    output = run(*BUILD_KERNELS, directory=small_source, environment=environment)
    for name in PXD_FILES:
        module = ".".join(name.with_suffix("").parts[1:])
        assert f'building extension "{module}" failed' in output
    generated = list((small_source / "src").rglob("*.c"))
    assert generated == [], "generated C beside the sources would be copied into the wheel"


@pytest.mark.parametrize("compiler", ["/nonexistent/cc", ""])
def test_setup_without_a_compiler_translates_nothing(small_source: Path, compiler: str) -> None:
    environment = {**environment_without_compiler(), "CC": compiler}
    output = run(*BUILD_KERNELS, directory=small_source, environment=environment)
    assert "the kernels stay interpreted" in output
    assert "Cythonizing" not in output
    assert list(small_source.rglob("*.c")) == []


def test_the_list_of_kernels_is_complete() -> None:
    assert sorted(KERNELS) == sorted(".".join(name.with_suffix("").parts[1:]) for name in PXD_FILES)


def test_every_python_of_the_classifiers_has_wheels() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    prefix = "Programming Language :: Python :: 3."
    versions = [name.removeprefix(prefix) for name in project["project"]["classifiers"] if name.startswith(prefix)]
    assert project["tool"]["cibuildwheel"]["build"] == [f"cp3{version}-*" for version in versions]


@pytest.mark.parametrize("workflow", sorted((ROOT / ".github/workflows").glob("*.yml")), ids=lambda path: path.name)
def test_a_workflow_names_targets_and_files_that_exist(workflow: Path) -> None:
    text = re.sub(r"(?m)^ *#.*$", "", workflow.read_text())
    targets = set(re.findall(r"\bmake ([a-z-]+)", text))
    known = set(re.findall(r"(?m)^([a-z-]+):", (ROOT / "Makefile").read_text()))
    files = set(re.findall(r"\b(?:tests|scripts)/[\w*/.-]*\w", text))
    assert targets
    assert targets - known == set()
    assert [name for name in sorted(files) if not list(ROOT.glob(name))] == []


def test_packages_are_made_by_programs_beside_this_python_without_an_activated_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    found = shutil.which(Path(sys.executable).name, path=make_distribution.with_own_programs()["PATH"])
    assert found == sys.executable


def test_the_description_on_a_package_index_has_no_relative_link(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    description = run_path("setup.py", run_name="setup")["long_description"]()
    assert check_distribution.relative_links(description) == []
    assert check_distribution.relative_links((ROOT / "README.md").read_text()) != []
    assert f"/blob/v{check_distribution.tailrace.__version__}/docs/tutorials/quickstart.md)" in description


PACKAGE_FILES = ("setup.py", "pyproject.toml", "MANIFEST.in", "README.md", "CHANGELOG.md", "LICENSE")
BUILD_SDIST = "import sys; from setuptools import build_meta; build_meta.build_sdist(sys.argv[1])"
OFFLINE = ("--quiet", "--no-build-isolation", "--no-deps", "--no-index")


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    source = tmp_path_factory.mktemp("source")
    shutil.copytree(ROOT / "src", source / "src", ignore=shutil.ignore_patterns("*.so", "*.c", "*.egg-info"))
    shutil.copytree(ROOT / "scripts", source / "scripts")
    for name in PACKAGE_FILES:
        shutil.copy(ROOT / name, source)
    run("-c", BUILD_SDIST, source / "dist", directory=source)
    (made,) = (source / "dist").iterdir()
    return made


@pytest.fixture(scope="module")
def wheel(sdist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("wheel")
    run("-m", "pip", "wheel", *OFFLINE, sdist, directory=directory, environment=environment_with_compiler())
    (made,) = directory.glob("*.whl")
    return made


@pytest.fixture
def install(tmp_path: Path) -> Callable[[Path], Path]:
    """Return a function that installs a package in a new environment, without a compiler, and returns its Python."""

    def install(package: Path) -> Path:
        environment = tmp_path / "environment"
        venv.create(environment, with_pip=False)
        names = {"base": str(environment), "platbase": str(environment)}
        purelib = sysconfig.get_path("purelib", "venv", vars=names)
        Path(purelib, "dependencies.pth").write_text(sysconfig.get_path("purelib"))
        python = environment / "bin" / "python"
        run("-m", "pip", "--python", python, "install", *OFFLINE, package, directory=tmp_path)
        return python

    return install


def smoke_test(python: Path, kernels: str) -> str:
    done = subprocess.run(
        [python, "-I", ROOT / "scripts" / "smoke_test.py", "--kernels", kernels],
        env=environment_without_compiler(),
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
def test_the_sdist_is_complete_and_needs_no_compiler(sdist: Path, install: Callable[[Path], Path]) -> None:
    assert check_distribution.problems(sdist) == []
    output = smoke_test(install(sdist), "interpreted")
    assert output.endswith("15 records written, read and verified\n")


@pytest.mark.slow
def test_a_wheel_is_compiled_and_needs_no_compiler(wheel: Path, install: Callable[[Path], Path]) -> None:
    problems = [problem for problem in check_distribution.problems(wheel) if "repair it with auditwheel" not in problem]
    assert problems == []
    output = smoke_test(install(wheel), "compiled")
    assert output.endswith("15 records written, read and verified\n")


@pytest.mark.slow
def test_what_spark_connect_needs_can_be_installed_beside_a_wheel(wheel: Path, tmp_path: Path) -> None:
    """PySpark itself is left out of the resolution, because an index has it as a sdist of 400 MB."""
    needed = [Requirement(text) for text in requires("pyspark") or ()]
    connect = [
        f"{one.name}{one.specifier}" for one in needed if one.marker and one.marker.evaluate({"extra": "connect"})
    ]
    assert "grpcio" in " ".join(connect)
    words = (
        "install",
        "--dry-run",
        "--ignore-installed",
        "--only-binary",
        ":all:",
        "--report",
        "report.json",
        "--quiet",
    )
    run("-m", "pip", *words, wheel, *connect, directory=tmp_path, environment=dict(os.environ))
    names = {one["metadata"]["name"].lower() for one in json.loads((tmp_path / "report.json").read_text())["install"]}
    assert {"tailrace", "grpcio", "zstandard"} <= names
