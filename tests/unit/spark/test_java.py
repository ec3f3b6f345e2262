"""The choice of Spark's Java, with small scripts instead of real ones."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tailrace import java
from tailrace.spark.environment import prepare_spark
from tailrace.spark.java import JavaMissing, use_java


def a_java(home: Path, version: str, modules: str = "java.base jdk.incubator.vector") -> Path:
    """Create a Java home whose `java` prints its version, or its arguments."""
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(
        f"""#!/bin/sh
if [ "$1" = -XshowSettings:properties ]; then
  echo "    java.home = {home}" >&2; echo "    java.specification.version = {version}" >&2
else
  for argument do echo "<$argument>"; done
fi
"""
    )
    program.chmod(0o755)
    (home / "release").write_text(f'MODULES="{modules}"\n')
    return home


@pytest.fixture(autouse=True)
def no_package(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(java, "find_spec", lambda name: None)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def test_java_home_is_preferred(tmp_path: Path) -> None:
    environment = {"JAVA_HOME": str(a_java(tmp_path / "a", "21")), "PATH": str(a_java(tmp_path / "b", "17") / "bin")}
    assert use_java(environment) == (tmp_path / "a", 21, "JAVA_HOME")


def test_spark_uses_this_python_unless_pyspark_python_is_set(tmp_path: Path) -> None:
    environment = {"JAVA_HOME": str(a_java(tmp_path / "a", "21"))}
    prepare_spark(environment)
    assert environment["PYSPARK_PYTHON"] == sys.executable
    environment["PYSPARK_PYTHON"] = "/opt/python"
    prepare_spark(environment)
    assert environment["PYSPARK_PYTHON"] == "/opt/python"


def test_an_old_java_is_skipped(tmp_path: Path) -> None:
    environment = {"JAVA_HOME": str(a_java(tmp_path / "a", "1.8")), "PATH": str(a_java(tmp_path / "b", "17") / "bin")}
    assert use_java(environment) == (tmp_path / "b", 17, "java on the path")
    assert environment["JAVA_HOME"] == str(tmp_path / "b")


def test_the_error_lists_the_java_installations_that_were_tried(tmp_path: Path) -> None:
    environment = {"JAVA_HOME": str(tmp_path / "gone"), "PATH": str(a_java(tmp_path / "b", "11") / "bin")}
    with pytest.raises(JavaMissing, match=r"\(JAVA_HOME does not run; java on the path is Java 11\)"):
        use_java(environment)


def test_a_reduced_java_runtime_is_started_without_the_vector_module(tmp_path: Path) -> None:
    environment = {"JAVA_HOME": str(a_java(tmp_path / "it's small", "21", "java.base")), "PATH": ""}
    found = use_java(environment)
    assert found.home != tmp_path / "it's small"
    given = ["-Da=b c", "--add-modules=jdk.incubator.vector", "", "Main", "*"]
    output = subprocess.run([found.home / "bin" / "java", *given], capture_output=True, text=True, check=True).stdout
    assert output.splitlines() == ["<-Da=b c>", "<>", "<Main>", "<*>"]
    assert use_java(environment).home == found.home
