"""The Python that Spark starts its workers with: this one, without the copy of PySpark that is compiled each time.

Spark puts `pyspark.zip` before everything else that a worker imports. It holds sources only, so each Python process
that Spark starts, and a streaming query starts one for every source, compiles them again: 0.9 s of CPU, where the
installed package has its bytecode at hand. On a busy machine that is the difference between starting and not: Spark
gives a worker ten seconds.
"""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path

from tailrace.spark.java import kept_script

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
    """A program for PYSPARK_PYTHON, where PySpark is installed for this interpreter."""
    name = re.sub(r"\W+", "-", sys.executable).strip("-")
    return str(kept_script(Path("python", name), _SCRIPT.format(python=shlex.quote(sys.executable))))
