"""Commands whose packages are not installed end with one sentence that names what to install."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tailrace.cli.errors import EXTRAS, explain_missing_module
from tests.support.command import write_directory

# Run commands in a Python without Spark. The result is a list of status and standard error of each.
RUN = """
import contextlib, io, json, sys
for name in ("pyspark", "pyarrow"):
    sys.modules[name] = None
from tailrace.cli.main import main
results = []
for arguments in json.loads(sys.argv[1]):
    with contextlib.redirect_stderr(io.StringIO()) as errors:
        results.append((main(arguments), errors.getvalue()))
print(json.dumps(results))
"""
JOBS = (
    "verify DATA",
    "reindex DATA",
    "compact DATA",
    "export DATA OUT --topic plain",
    "export DATA OUT --topic plain --to delta",
    "export DATA lake.plain --topic plain --to iceberg",
    "diff DATA DATA",
    "replay DATA 127.0.0.1:1 --topic plain",
    "load DATA OUT",
    "profile DATA",
)


def test_a_job_without_spark_names_the_extra_to_install(tmp_path: Path) -> None:
    places = {"DATA": str(write_directory(tmp_path / "data", "plain")), "OUT": str(tmp_path / "out")}
    commands = [["job", *(places.get(word, word) for word in job.split())] for job in JOBS]
    done = subprocess.run(
        [sys.executable, "-c", RUN, json.dumps(commands)], capture_output=True, text=True, timeout=120, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    for job, (status, errors) in zip(JOBS, json.loads(done.stdout), strict=True):
        assert status == 2, (job, errors)
        assert errors.endswith("installed: pip install 'tailrace[spark]'\n"), (job, errors)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("package", EXTRAS)
def test_the_extra_of_a_package_is_named(package: str) -> None:
    text = explain_missing_module(ModuleNotFoundError(name=f"{package}.inner"))
    assert text is not None
    assert text.endswith(f"pip install 'tailrace[{EXTRAS[package]}]'")


def test_a_missing_module_of_tailrace_is_an_internal_error() -> None:
    assert explain_missing_module(ModuleNotFoundError(name="tailrace.nothing")) is None
