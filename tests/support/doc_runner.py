"""Run the examples of a documentation page as a reader would: `python -m tests.support.doc_runner PAGE [--all]`.

Each page gets its own directory and, where the system allows it, its own network namespace. There port 9092 is free,
and nothing reaches further than the loopback interface. Without `--all`, examples that need Spark, Kafka or much time
are left out.
`tests/support/doc_page.py` has the rules for pages.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import fcntl
import os
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from tests.support.doc_page import ROOT, Example, Page, missing_lines, read_page

STEP_TIMEOUT_S = 300.0
READY_TIMEOUT_S = 60.0

_CLONE_NEWUSER, _CLONE_NEWNET = 0x10000000, 0x40000000
_SIOCGIFFLAGS, _SIOCSIFFLAGS, _IFF_UP = 0x8913, 0x8914, 1

# Kafka's scripts, by the class that each runs.
KAFKA_TOOLS = {
    "kafka-acls": "org.apache.kafka.tools.AclCommand",
    "kafka-client-metrics": "org.apache.kafka.tools.ClientMetricsCommand",
    "kafka-cluster": "org.apache.kafka.tools.ClusterTool",
    "kafka-configs": "kafka.admin.ConfigCommand",
    "kafka-delegation-tokens": "org.apache.kafka.tools.DelegationTokenCommand",
    "kafka-features": "org.apache.kafka.tools.FeatureCommand",
    "kafka-leader-election": "org.apache.kafka.tools.LeaderElectionCommand",
    "kafka-log-dirs": "org.apache.kafka.tools.LogDirsCommand",
    "kafka-metadata-quorum": "org.apache.kafka.tools.MetadataQuorumCommand",
    "kafka-reassign-partitions": "org.apache.kafka.tools.reassign.ReassignPartitionsCommand",
    "kafka-server-start": "kafka.Kafka",
    "kafka-storage": "kafka.tools.StorageTool",
    "kafka-topics": "org.apache.kafka.tools.TopicCommand",
}


class ExampleFailed(Exception):
    """An example that does not do what its page says."""


def enter_own_network() -> bool:
    """Move this process into a network namespace with only a loopback interface, or return False."""
    uid, gid = os.getuid(), os.getgid()
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(_CLONE_NEWUSER | _CLONE_NEWNET) != 0:
        return False
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"0 {uid} 1")
    Path("/proc/self/gid_map").write_text(f"0 {gid} 1")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        request = fcntl.ioctl(any_socket, _SIOCGIFFLAGS, struct.pack("16sH14s", b"lo", 0, b""))
        flags = struct.unpack("16sH14s", request)[1]
        fcntl.ioctl(any_socket, _SIOCSIFFLAGS, struct.pack("16sH14s", b"lo", flags | _IFF_UP, b""))
    return True


class Runner:
    """Runs examples in one directory; `close` ends the processes that they left behind."""

    def __init__(self, directory: Path, environment: dict[str, str]) -> None:
        self._directory = directory
        self._environment = environment
        self._groups: list[subprocess.Popen[bytes]] = []
        self._number = 0

    def run(self, example: Example) -> None:
        if example.file_name:
            path = self._directory / example.file_name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(example.text)
        elif example.language == "python":
            script = self._directory / f".example-{len(self._groups)}.py"
            script.write_text(example.text)
            self._finish(example, [sys.executable, str(script)], [])
        else:
            *first, (last, shown) = example.commands
            for command, lines in first:
                self._finish(example, _bash(command), lines, exit_status=0)
            if example.is_background:
                self._start(example, _bash(f"exec {last}"), shown)
            else:
                self._finish(example, _bash(last), shown)

    def close(self) -> None:
        for group in self._groups:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(group.pid, signal.SIGKILL)
            group.wait()

    def _open(self, command: list[str]) -> tuple[subprocess.Popen[bytes], Path]:
        self._number += 1
        output = self._directory / f".output-{self._number}"
        with output.open("wb") as file:
            process = subprocess.Popen(
                command,
                cwd=self._directory,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self._groups.append(process)
        return process, output

    def _finish(self, example: Example, command: list[str], shown: list[str], exit_status: int | None = None) -> None:
        process, output = self._open(command)
        try:
            status = process.wait(STEP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            raise ExampleFailed(f"{example.place}: still running\n{command[-1]}\n{_text(output)}") from None
        wanted = example.exit_status if exit_status is None else exit_status
        if status != wanted:
            problem = f"exit status {status}, expected {wanted}"
            raise ExampleFailed(f"{example.place}: {problem}\n{command[-1]}\n{_text(output)}")
        self._compare(example, command, shown, _text(output))

    def _start(self, example: Example, command: list[str], shown: list[str]) -> None:
        process, output = self._open(command)
        deadline_s = time.monotonic() + READY_TIMEOUT_S
        while missing_lines(shown, _text(output)):
            if process.poll() is not None or time.monotonic() > deadline_s:
                self._compare(example, command, shown, _text(output))
            time.sleep(0.02)

    def _compare(self, example: Example, command: list[str], shown: list[str], output: str) -> None:
        missing = missing_lines(shown, output)
        if missing:
            lines = "\n".join(missing)
            raise ExampleFailed(f"{example.place}: not printed:\n{lines}\nby {command[-1]}\nwhich printed\n{output}")


def _bash(command: str) -> list[str]:
    return ["bash", "-euo", "pipefail", "-c", command]


def _text(output: Path) -> str:
    return output.read_text(errors="replace")


def _environment(directory: Path, needs: frozenset[str]) -> dict[str, str]:
    """Return the environment of an activated virtual environment, with Kafka's tools on the PATH if the page needs
    them.
    """
    path = [str(Path(sys.executable).parent), os.environ["PATH"]]
    if "kafka" in needs:
        path.insert(0, str(_kafka_tools(directory / "bin")))
    kept = {key: text for key, text in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    # Without a network, `tailrace cluster up` takes Kafka's jars from Maven's local repository.
    return {
        "TAILRACE_MAVEN_REPOSITORY": (Path.home() / ".m2" / "repository").as_uri(),
        **kept,
        "PYTHONPYCACHEPREFIX": str(Path(tempfile.gettempdir()) / f"tailrace-docs-bytecode-{os.getuid()}"),
        "PATH": os.pathsep.join(path),
        "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), *sys.path[1:]]),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "PIP_ROOT_USER_ACTION": "ignore",
        "COLUMNS": "100",
    }


def _kafka_tools(directory: Path) -> Path:
    from tests.support.kafka_install import kafka_installation

    directory.mkdir()
    for name, main_class in KAFKA_TOOLS.items():
        words = " ".join(f"'{word}'" for word in kafka_installation().command(main_class))
        script = directory / f"{name}.sh"
        script.write_text(f'#!/bin/sh\nexec {words} "$@"\n')
        script.chmod(0o755)
    return directory


@contextlib.contextmanager
def _alone() -> Iterator[None]:
    """Hold a lock while examples share the machine's network."""
    with (Path(tempfile.gettempdir()) / "tailrace-doc-examples.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def run_page(path: Path, *, is_all: bool = False, is_verbose: bool = False) -> int:
    """Run a page's examples and return how many ran. The caller stays in its own network."""
    page = read_page(path)
    ran = 0
    with tempfile.TemporaryDirectory(prefix="tailrace-docs-", ignore_cleanup_errors=True) as directory:
        needs = page.needs if is_all else frozenset()
        runner = Runner(Path(directory), _environment(Path(directory), needs))
        try:
            for example in page.examples:
                if example.is_step and not example.needs - needs:
                    began_s = time.monotonic()
                    runner.run(example)
                    ran += 1
                    if is_verbose:
                        print(f"{example.place}  {time.monotonic() - began_s:.1f} s", flush=True)
        finally:
            runner.close()
    return ran


def run_apart(page: Page, *options: str) -> None:
    """Run a page's examples in a process of their own, or raise AssertionError with its output."""
    command = [sys.executable, "-m", "tests.support.doc_runner", str(page.path), *options]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("page", type=Path)
    parser.add_argument("--all", action="store_true", help="include examples that need Spark, Kafka or much time")
    options = parser.parse_args()
    with contextlib.nullcontext() if enter_own_network() else _alone():
        try:
            ran = run_page(options.page.resolve(), is_all=options.all, is_verbose=True)
        except ExampleFailed as failure:
            print(failure)
            return 1
    print(f"{ran} examples ran")
    return 0


if __name__ == "__main__":
    sys.exit(main())
