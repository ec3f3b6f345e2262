"""Tailrace on systems that lack calls of Linux: the portable server, and what is left on Windows.

The calls are taken away from a Linux Python, before Tailrace is imported. `TAILRACE_PORTABLE` hides them from Tailrace
only, so that the tests of the server themselves run on the portable paths.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import tailrace
from tailrace.model.system_calls import PORTABLE_VARIABLE

ROOT = Path(__file__).parents[2]

LIKE_MACOS = """
import os, select, socket, sys
for name in [name for name in dir(select) if name.startswith(("epoll", "EPOLL"))]:
    delattr(select, name)
for name in ("eventfd", "eventfd_read", "eventfd_write", "EFD_NONBLOCK", "EFD_CLOEXEC", "fdatasync", "posix_fallocate",
             "preadv", "pwritev", "posix_fadvise", "memfd_create", "sched_getaffinity", "copy_file_range", "pipe2"):
    delattr(os, name) if hasattr(os, name) else None
for name in ("MSG_MORE", "SOCK_NONBLOCK", "SOCK_CLOEXEC"):
    delattr(socket, name)
"""
LIKE_WINDOWS = (
    LIKE_MACOS
    + """
for name in ("fcntl", "resource", "pwd", "grp", "termios", "tty", "pty", "syslog"):
    sys.modules[name] = None
for name in ("poll", "POLLIN", "POLLOUT", "POLLERR", "POLLHUP"):
    delattr(select, name)
for name in ("sendfile", "pread", "pwrite", "fork", "posix_spawn", "statvfs", "O_NONBLOCK", "O_CLOEXEC", "O_DIRECTORY"):
    delattr(os, name)
"""
)
COMMAND = """
import sys
from tailrace.cli.main import main
sys.exit(main(sys.argv[1:]))
"""
ONLY_OUR_PLUGIN = """
os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # other plugins may need more of the system
import pytest
sys.exit(pytest.main(sys.argv[1:]))
"""
CLIENT = """
from tailrace.cli.main import main
for command in ("topics create orders", "produce orders", "consume orders", "topics list", "offsets orders",
                "configs describe --topic orders", "groups list", "transactions list", "cluster status", "top --once"):
    assert main([*command.split(), "--bootstrap", sys.argv[1]]) == 0, command
"""
EMBEDDED = """
import tailrace
from tailrace.cli.main import main
with tailrace.Broker(tailrace_metrics_port=0) as broker:
    broker.create_topic("orders")
    at = ("--bootstrap", broker.bootstrap)
    assert main(["produce", "orders", *at]) == 0
    assert main(["consume", "orders", *at]) == 0
    assert main(["log", "ls", broker.data]) == 0
    import urllib.request
    page = urllib.request.urlopen(broker.metrics).read().decode()
    assert "process_open_fds" in page, page
    broker.restart()
    assert main(["consume", "orders", *at]) == 0
"""


def run(program: str, *arguments: str, typed: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", program, *arguments], input=typed, capture_output=True, text=True, timeout=120
    )


def test_a_broker_works_without_the_calls_that_macos_lacks() -> None:
    done = run(LIKE_MACOS + EMBEDDED, typed="hello\n")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("hello") == 2
    assert done.stderr == ""


def test_serve_works_without_the_calls_that_macos_lacks(tmp_path: Path) -> None:
    data = tmp_path / "data"
    serve = (sys.executable, "-c", LIKE_MACOS + COMMAND, "serve", "--data", str(data), "--port", "0")
    with subprocess.Popen(serve, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as broker:
        assert broker.stdout is not None
        try:
            at = ("--bootstrap", broker.stdout.readline().partition("PLAINTEXT://")[2].split()[0])
            assert run(COMMAND, "topics", "create", "t", *at).returncode == 0
            produced = [
                run(COMMAND, "produce", "t", "-z", codec, *at, typed="hello\n" * 1000) for codec in ("none", "zstd")
            ]
            consumed = run(COMMAND, "consume", "t", "--values", *at)
        finally:
            broker.terminate()
        _, errors = broker.communicate(timeout=60)
    assert [done.returncode for done in produced] == [0, 0], produced
    assert consumed.stdout == "hello\n" * 2000
    assert (broker.returncode, errors) == (0, "")
    assert run(COMMAND, "log", "verify", str(data), "--deep").returncode == 0


def test_client_commands_need_nothing_that_windows_lacks() -> None:
    with tailrace.Broker() as broker:
        done = run(LIKE_WINDOWS + CLIENT, broker.bootstrap, typed="hello\n")
    assert (done.returncode, done.stderr) == (0, "")
    assert "hello" in done.stdout


@pytest.mark.parametrize("command", [("serve", "--data", "data"), ("log", "ls", "data"), ("tour",)], ids=" ".join)
def test_commands_on_data_directories_are_refused_on_windows(
    command: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = run(LIKE_WINDOWS + COMMAND, *command)
    assert done.returncode == 2
    assert done.stderr == (
        "tailrace: this command needs Linux or macOS: this system's Python has no module fcntl. On Windows, run it in "
        "WSL or in a container\n"
    )
    assert list(tmp_path.iterdir()) == []


def test_the_pytest_plugin_does_not_break_pytest_on_windows(tmp_path: Path) -> None:
    (tmp_path / "test_nothing.py").write_text("def test_nothing(): pass\n")
    program = LIKE_WINDOWS.replace('"pread", "pwrite", ', "") + ONLY_OUR_PLUGIN
    done = run(program, "-q", "-p", "no:cacheprovider", "-p", "tailrace.pytest_plugin", str(tmp_path))
    assert done.returncode == 0, done.stdout + done.stderr


def run_tests(*paths: str, workers: int) -> None:
    """Run tests of this repository in a Python process whose Tailrace uses the portable paths."""
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-q", "-m", "not slow and not kafka"]
    done = subprocess.run(
        [*command, "-n", str(workers), *paths],
        cwd=ROOT,
        env={**os.environ, PORTABLE_VARIABLE: "1"},
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert done.returncode == 0, done.stdout[-8_000:]


@pytest.mark.long
def test_the_server_tests_pass_on_the_portable_poll() -> None:
    run_tests("tests/unit/server", *map(str, sorted(ROOT.glob("tests/integration/test_server_r*.py"))), workers=0)


@pytest.mark.slow
def test_all_tests_with_a_server_pass_on_the_portable_poll() -> None:
    names = ("server_*", "embedded", "serve*", "hostile_clients", "long_requests", "secured_broker", "pytest_plugin")
    found = [str(path) for name in names for path in sorted(ROOT.glob(f"tests/integration/test_{name}.py"))]
    run_tests("tests/unit/log/test_files.py", *found, workers=2)
