from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tailrace.spark.worker_python import worker_python


def test_workers_use_this_interpreter_without_pyspark_zip(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "a cache"))
    program = worker_python()
    assert worker_python() == program
    code = "import json, os, sys; print(json.dumps([sys.executable, os.environ['PYTHONPATH'], sys.argv[1:]]))"
    path = "/spark/python/lib/pyspark.zip:/spark/py4j-src.zip:/with a blank"
    done = subprocess.run(
        [program, "-c", code, "one", "two words"], env={"PYTHONPATH": path}, capture_output=True, text=True, check=True
    )
    assert json.loads(done.stdout) == [sys.executable, "/spark/py4j-src.zip:/with a blank", ["one", "two words"]]
