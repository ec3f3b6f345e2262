"""The Python of Spark's workers: this interpreter, without `pyspark.zip`, so that workers start faster.

Spark puts `pyspark.zip` at the start of a worker's path. It has sources only, so every Python process that Spark starts
compiles them again, which costs 0.9 s of CPU. The installed package has its bytecode. On a busy machine this decides if
a worker starts within Spark's limit of ten seconds.
"""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path

from tailrace.spark.java import cached_script

_SCRIPT = """\
#!/bin/sh
set -f
kept=
IFS=:
for part in $PYTHONPATH; do
  case $part in
    */pyspark.zip) ;;
    *) kept=${{kept:+$kept:}}$part ;;
  esac
done
unset IFS
PYTHONPATH=$kept
export PYTHONPATH
exec {python} "$@"
"""


def worker_python() -> str:
    """Return a program for PYSPARK_PYTHON. PySpark must be installed for this interpreter."""
    name = re.sub(r"\W+", "-", sys.executable).strip("-")
    return str(cached_script(Path("python", name), _SCRIPT.format(python=shlex.quote(sys.executable))))
