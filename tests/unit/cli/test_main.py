"""The `tailrace` command: help, version, exit status, and errors of one sentence without a traceback."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import tailrace as package
from tailrace.cli import main as main_module
from tailrace.cli.parsing.parser import build_parser
from tailrace.model.kernel_forms import describe_kernels
from tests.support.command import Ran, contents, tailrace, write_directory

VERBS = ("ls", "cat", "dump", "explain", "verify", "repair")


def assert_one_sentence(ran: Ran, status: int = 2) -> None:
    assert ran.status == status
    assert ran.out == ""
    assert ran.err.startswith("tailrace: ")
    assert ran.err.count("\n") == 1


def test_help_teaches_with_examples() -> None:
    assert "examples:" in tailrace("--help").out
    assert "examples:" in tailrace("log", "--help").out
    for verb in VERBS:
        ran = tailrace("log", verb, "--help")
        assert ran.status == 0
        assert f"tailrace log {verb} /var/lib/kafka" in ran.out
        assert all(len(line) <= 120 for line in ran.lines)


def test_version_is_printed_with_the_form_of_the_kernels() -> None:
    assert tailrace("--version").out == f"tailrace {package.__version__} ({describe_kernels()})\n"


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["log"],
        ["nonsense"],
        ["log", "ls"],
        ["log", "cat", "x", "--max", "0"],
        ["log", "cat", "x", "--from-timestamp", "yesterday"],
        ["log", "cat", "x", "--from-timestamp", "1969-01-01"],
        ["log", "explain", "x"],
        ["log", "explain", "x", "--offset", "1", "--timestamp", "1"],
        ["log", "repair", "x", "--yes", "--dry-run"],
    ],
    ids=" ".join,
)
def test_a_wrong_command_line_is_a_usage_error(arguments: list[str]) -> None:
    ran = tailrace(*arguments)
    assert ran.status == 2
    assert ran.out == ""
    assert "usage: tailrace" in ran.err
    assert "Traceback" not in ran.err


def with_target(verb: str) -> list[str]:
    return ["--offset", "0"] if verb == "explain" else []


@pytest.mark.parametrize("verb", VERBS)
def test_a_path_without_a_log_is_reported_in_one_sentence(verb: str, tmp_path: Path) -> None:
    assert_one_sentence(tailrace("log", verb, tmp_path / "nowhere", *with_target(verb)))
    assert_one_sentence(tailrace("log", verb, tmp_path, *with_target(verb)))
    (tmp_path / "notes.txt").write_text("hello")
    assert_one_sentence(tailrace("log", verb, tmp_path / "notes.txt", *with_target(verb)))
    (tmp_path / "misnamed").mkdir()
    (tmp_path / "misnamed" / "00000000000000000000.log").touch()
    assert_one_sentence(tailrace("log", verb, tmp_path / "misnamed", *with_target(verb)))


@pytest.mark.parametrize("verb", VERBS)
def test_missing_partitions_are_reported_in_one_sentence(verb: str, tmp_path: Path) -> None:
    path = write_directory(tmp_path / "data", "plain")
    ran = tailrace("log", verb, path, "--topic", "other", "--partition", "7", *with_target(verb))
    assert_one_sentence(ran)
    assert ran.err.endswith("has no partition 7 of other\n")


def test_an_internal_error_is_reported_in_one_sentence(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def broken(name: str) -> object:
        raise ValueError("two\nlines")

    monkeypatch.setattr(main_module, "import_module", broken)
    monkeypatch.delenv("TAILRACE_DEBUG", raising=False)
    ran = tailrace("log", "ls", tmp_path)
    assert_one_sentence(ran, 3)
    assert "internal error; please report it: ValueError: two lines" in ran.err
    monkeypatch.setenv("TAILRACE_DEBUG", "1")
    with pytest.raises(ValueError, match="two"):
        tailrace("log", "ls", tmp_path)


def process(*arguments: object) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "tailrace", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, timeout=60, check=False)


def test_the_package_runs_as_a_module() -> None:
    done = process("--version")
    assert (done.returncode, done.stdout) == (0, f"tailrace {package.__version__} ({describe_kernels()})\n".encode())


@pytest.mark.parametrize("module", ["tailrace.cli.parsing.parser", "tailrace.cli.admin.topics"])
@pytest.mark.parametrize("interrupt", ["interrupt()", "exec('interrupt()')"])
def test_ctrl_c_during_an_import_ends_a_command_with_130(module: str, interrupt: str, tmp_path: Path) -> None:
    (tmp_path / "interrupted.py").write_text(
        "import os, runpy, signal, sys\n"
        "def interrupt():\n"
        "    os.kill(os.getpid(), signal.SIGINT)\n"
        "class Finder:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        f"        if name == {module!r}: {interrupt}\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "sys.meta_path.insert(0, Finder())\n"
        "sys.argv[1:] = ['topics', 'list', '--bootstrap', '127.0.0.1:1']\n"
        "runpy.run_module('tailrace', run_name='__main__')\n"
    )
    command = [sys.executable, "-m", "interrupted"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "\n")


def test_help_imports_nothing_of_the_log() -> None:
    """The import is what makes `tailrace --help` slow."""
    code = (
        "import sys; from tailrace.cli.main import main; main(['log', 'cat', '--help']); "
        "print([name for name in sys.modules if name.startswith(('tailrace.log', 'tailrace.records', 'cramjam'))])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_a_closed_output_pipe_ends_the_command_with_status_0(tmp_path: Path) -> None:
    path = write_directory(tmp_path / "data")
    read_end, write_end = os.pipe()
    os.close(read_end)
    done = subprocess.run(
        [sys.executable, "-m", "tailrace", "log", "dump", str(path), "--print-data"],
        stdout=write_end,
        stderr=subprocess.PIPE,
        timeout=60,
        check=False,
    )
    os.close(write_end)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize("verb", ["ls", "cat", "dump", "verify", "repair"])
def test_log_commands_change_no_files(verb: str, tmp_path: Path) -> None:
    path = write_directory(tmp_path / "data", "plain", "transactions", clean=False)
    before = contents(path)
    assert tailrace("log", verb, path).status == 0
    assert contents(path) == before


def verbs_of(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    groups = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    yield parser
    for group in groups:
        for verb in group.choices.values():
            yield from verbs_of(verb)


def test_every_command_teaches_with_an_example_of_itself() -> None:
    for parser in verbs_of(build_parser()):
        assert "examples:\n" in str(parser.epilog), parser.prog
        assert parser.prog in str(parser.epilog), parser.prog
        assert parser.description, parser.prog
