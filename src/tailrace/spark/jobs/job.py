"""The frame of all jobs: plan on the driver, run tasks, collect or propose the result.

A job is a function `verb(spark, path, …)` that returns a value. It makes a list of tasks, small values that can be
pickled and that name files and offsets, never open ones; each is one Spark task. What a task finds comes back in the
order of the tasks. Records stay inside the workers: what travels is findings, numbers and names of files.

    run_tasks(spark, tasks, work)             [work(task), …]
    run_grouped(spark, tasks, work, merge)    {group: merge(group, results), …}, through a shuffle

A `JobError` that `work` or `merge` raises is an answer: it is not tried again, and reaches the caller as it is. What
else goes wrong (a worker dies, a disk fails) Spark tries again as it is told to, and then it becomes a JobError too.

Spark schedules Python functions over RDDs here: they take any value, where `mapInArrow` would take Arrow and pandas.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import groupby
from typing import Any, TypeVar

from tailrace.spark.jobs.errors import JobError
from tailrace.spark.jobs.progress import TaskProgress
from tailrace.spark.jobs.session import first_sentence
from tailrace.spark.worker_process import settle

Task = TypeVar("Task")
Result = TypeVar("Result")
Merged = TypeVar("Merged")

FAILED = -1  # the group of errors: it is told before all others


def run_tasks(spark: Any, tasks: Sequence[Task], work: Callable[[Task], Result], *, label: str) -> list[Result]:
    """What `work` returns for each task, in their order; as many Spark tasks as there are tasks."""
    return collected(spark, run_rdd(spark, tasks, work), label) if tasks else []


def run_rdd(spark: Any, tasks: Any, work: Callable[[Any], Any]) -> Any:
    """The answers of tasks (a sequence, or an RDD of them) as an RDD, for jobs with stages of their own."""
    rdd = tasks if hasattr(tasks, "mapPartitions") else _tasks(spark, tasks)
    return rdd.map(partial(_answer, work))


def collected(spark: Any, answers: Any, label: str) -> list[Any]:
    """What an RDD of answers says; the first error of a task is raised."""
    return [_opened(answer) for answer in _collect(spark, answers, label)]


def run_grouped(
    spark: Any,
    tasks: Sequence[Task],
    work: Callable[[Task], Iterable[tuple[int, int, Result]]],
    merge: Callable[[int, Iterator[Result]], Merged],
    *,
    label: str,
) -> dict[int, Merged]:
    """Results of tasks put together by group in a second stage.

    `work` gives group, place in the group and result, as many as it likes; `merge` gets a group and its results, in
    order of their places. A group of which no task says anything is not in the answer.
    """
    if not tasks:
        return {}
    merged = (
        _tasks(spark, tasks)
        .flatMap(partial(_placed, work))
        .repartitionAndSortWithinPartitions(min(len(tasks), 200), lambda key: key[0])
        .mapPartitions(partial(_merged, merge))
    )
    answers = dict(_collect(spark, merged, label))
    return {group: _opened(answers[group]) for group in sorted(answers)}


def _tasks(spark: Any, tasks: Sequence[Any]) -> Any:
    try:
        context = spark.sparkContext
    except Exception:  # an exception of PySpark's own
        raise JobError("jobs need a Spark of which this process is the driver; Spark Connect has none") from None
    return context.parallelize(tasks, len(tasks))


def _answer(work: Callable[[Any], Any], task: Any) -> tuple[bool, Any]:
    settle()
    try:
        return True, work(task)
    except JobError as error:
        return False, error


def _opened(answer: tuple[bool, Any]) -> Any:
    is_good, value = answer
    if not is_good:
        raise value
    return value


def _placed(work: Callable[[Any], Iterable[tuple[int, int, Any]]], task: Any) -> Iterator[tuple[tuple[int, int], Any]]:
    settle()
    try:
        for group, place, result in work(task):
            yield (group, place), result
    except JobError as error:
        yield (FAILED, 0), error


def _merged(
    merge: Callable[[int, Iterator[Any]], Any], rows: Iterable[tuple[tuple[int, int], Any]]
) -> Iterator[tuple[int, tuple[bool, Any]]]:
    settle()
    for group, found in groupby(rows, lambda row: row[0][0]):
        results = (result for _, result in found)
        yield group, (False, next(results)) if group == FAILED else _answer(partial(merge, group), results)


def _collect(spark: Any, rdd: Any, label: str) -> list[Any]:
    with TaskProgress(spark, label):
        try:
            return list(rdd.collect())
        except Exception as error:
            raise JobError(f"{label} failed: {first_sentence(error)}") from error
