"""The framework of jobs: order of results, errors of tasks, progress on a terminal and in log files."""

from __future__ import annotations

import io
import pickle
import threading
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from tailrace.spark.jobs import task_progress
from tailrace.spark.jobs.errors import JobError, can_heal
from tailrace.spark.jobs.job import run_grouped, run_tasks
from tailrace.spark.jobs.packing import pack
from tailrace.spark.jobs.spark_session import first_sentence
from tailrace.spark.jobs.task_progress import TaskProgress, progress_lines
from tests.support.command import tailrace
from tests.support.inline_spark import InlineSpark


def test_results_are_in_the_order_of_the_tasks() -> None:
    assert run_tasks(InlineSpark(), [3, 1, 2], lambda task: task * 10, label="x") == [30, 10, 20]
    assert run_tasks(InlineSpark(), [], lambda task: task, label="x") == []


def test_a_job_error_of_a_task_is_raised_in_the_caller() -> None:
    def work(task: int) -> int:
        if task == 2:
            raise JobError("orders-0 is damaged", status=1)
        return task

    with pytest.raises(JobError, match="orders-0 is damaged") as error:
        run_tasks(InlineSpark(), [1, 2, 3], work, label="x")
    assert error.value.status == 1
    with pytest.raises(JobError, match="orders-0 is damaged"):
        run_grouped(InlineSpark(), [1, 2, 3], lambda task: [(0, 0, work(task))], lambda group, found: 0, label="x")


def test_results_are_merged_by_group_in_order() -> None:
    def work(task: int) -> Iterator[tuple[int, int, str]]:
        yield task % 2, 10 - task, f"t{task}"
        yield 7, task, f"t{task}"

    merged = run_grouped(InlineSpark(), range(5), work, lambda group, found: (group, list(found)), label="x")
    assert merged == {
        0: (0, ["t4", "t2", "t0"]),
        1: (1, ["t3", "t1"]),
        7: (7, ["t0", "t1", "t2", "t3", "t4"]),
    }
    assert run_grouped(InlineSpark(), [], work, lambda group, found: 0, label="x") == {}


def test_small_pieces_are_packed_and_large_ones_are_single_tasks() -> None:
    assert pack([3, 3, 3, 50, 1, 9, 1], lambda piece: piece, 10) == [[3, 3, 3], [50], [1, 9], [1]]
    assert pack([], lambda piece: piece, 10) == []


class Stage(NamedTuple):
    numTasks: int = 40  # noqa: N815
    numCompletedTasks: int = 10  # noqa: N815
    numActiveTasks: int = 2  # noqa: N815


class Watched:
    """A fake Spark with one running stage."""

    sparkContext: Any  # noqa: N815

    def __init__(self) -> None:
        self.sparkContext = self

    def statusTracker(self) -> Watched:  # noqa: N802
        return self

    def getActiveStageIds(self) -> list[int]:  # noqa: N802
        return [4]

    def getStageInfo(self, stage: int) -> Stage:  # noqa: N802
        return Stage()


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_is_drawn_on_a_terminal_only() -> None:
    terminal = Terminal()
    with TaskProgress(Watched(), "verify", terminal) as progress:
        progress.draw()
    assert "25%  10 of 40 tasks, 2 running  verify" in terminal.getvalue()
    assert terminal.getvalue().endswith("\r\x1b[K")
    file = io.StringIO()
    with TaskProgress(Watched(), "verify", file):
        pass
    assert file.getvalue() == ""


def test_progress_lines_are_written_for_a_command_without_a_terminal() -> None:
    lines: list[str] = []
    with progress_lines(lines.append), TaskProgress(Watched(), "verify", io.StringIO()) as progress:
        progress.draw()
    assert lines == ["verify: 10 of 40 tasks (25%), 2 running, 0 s"]
    with TaskProgress(Watched(), "verify", io.StringIO()):
        assert len(lines) == 1


def test_a_waiting_job_writes_a_progress_line_at_each_interval(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(task_progress, "LINE_INTERVAL_S", 0.01)
    lines: list[str] = []
    enough = threading.Event()

    def write(line: str) -> None:
        lines.append(line)
        if len(lines) == 3:
            enough.set()

    with progress_lines(write), TaskProgress(Watched(), "verify", io.StringIO()):
        assert enough.wait(20)
    assert all(line.startswith("verify: 10 of 40 tasks") for line in lines)


def test_a_stack_trace_is_reduced_to_its_last_sentence() -> None:
    text = "Job aborted\nTraceback:\nOSError: [Errno 28] No space left on device\n\n\tat org.apache"
    assert first_sentence(Exception(text)) == "[Errno 28] No space left on device"
    assert first_sentence(Exception("Could not parse Master URL: 'x'\n\tat org")) == "Could not parse Master URL: 'x'"


@pytest.mark.parametrize("verb", ["verify", "reindex", "compact", "export"])
def test_job_help_has_examples_and_wrong_options_are_refused(verb: str) -> None:
    reported = tailrace("job", verb, "--help")
    assert reported.status == 0
    assert "examples:" in reported.out
    wrong = tailrace("job", verb, "/nowhere", "--conf", "driver.memory=1g")
    assert wrong.status == 2
    assert "is not a Spark setting: write spark.NAME=VALUE" in wrong.err


def test_an_error_of_a_task_keeps_its_chance_to_heal() -> None:
    for is_transient in (False, True):
        error = pickle.loads(pickle.dumps(JobError("the broker is away", is_transient=is_transient)))
        assert (str(error), error.is_transient) == ("the broker is away", is_transient)


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (ConnectionError("refused"), True),
        (TimeoutError("late"), True),
        (RuntimeError("status 503"), True),
        (PermissionError("no"), False),
        (KeyError("typo"), False),
        (ValueError("a wrong table"), False),
        (type("NoSuchTableError", (Exception,), {})("gone"), False),
        (JobError("two schemas"), False),
        (JobError("away", is_transient=True), True),
    ],
)
def test_errors_of_networks_heal_and_mistakes_do_not(error: Exception, expected: bool) -> None:
    assert can_heal(error) is expected
