"""The framework of all jobs: plan on the driver, run tasks, collect or propose the result.

A job is a function `verb(spark, path, …)` that returns a value. It makes a list of tasks: small picklable values with
names of files and offsets, without open files. Each task is one Spark task. Results come back in the order of the
tasks. Records stay inside the workers; only findings, numbers and file names are sent to the driver.

    run_tasks(spark, tasks, work)             [work(task), …]
    run_grouped(spark, tasks, work, merge)    {group: merge(group, results), …}, through a shuffle

A `JobError` that `work` or `merge` raises is a result: the task is not retried, and the error is raised in the caller.
For any other failure (a worker dies, a disk fails) Spark retries the task as configured, and then a JobError is raised.

The tasks are Python functions over RDDs, because these accept any value; `mapInArrow` would need Arrow and pandas.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import groupby
from typing import Any, TypeVar

from tailrace.spark.jobs.errors import JobError, TasksFailed
from tailrace.spark.jobs.spark_session import first_sentence, is_of_machines
from tailrace.spark.jobs.task_progress import TaskProgress
from tailrace.spark.worker_process import freeze_imports

Task = TypeVar("Task")
Result = TypeVar("Result")
Merged = TypeVar("Merged")

FAILED = -1  # the group of errors, sorted before all others


def run_tasks(spark: Any, tasks: Sequence[Task], work: Callable[[Task], Result], *, label: str) -> list[Result]:
    """Run each task as one Spark task. Return the results of `work` in the order of the tasks."""
    return collected(spark, run_rdd(spark, tasks, work), label) if tasks else []


def run_rdd(spark: Any, tasks: Any, work: Callable[[Any], Any]) -> Any:
    """Return the results of tasks (a sequence or an RDD) as an RDD, for jobs with further stages."""
    rdd = tasks if hasattr(tasks, "mapPartitions") else _tasks(spark, tasks)
    return rdd.map(partial(_answer, work))


def collected(spark: Any, answers: Any, label: str) -> list[Any]:
    """Collect an RDD of results. Raise the first error of a task."""
    return [_opened(answer) for answer in _collect(spark, answers, label)]


def run_grouped(
    spark: Any,
    tasks: Sequence[Task],
    work: Callable[[Task], Iterable[tuple[int, int, Result]]],
    merge: Callable[[int, Iterator[Result]], Merged],
    *,
    label: str,
) -> dict[int, Merged]:
    """Run tasks, and merge their results by group in a second stage.

    `work` yields any number of tuples (group, position in the group, result). `merge` gets a group and its results,
    ordered by position. Groups without results are not returned.
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
        raise JobError(
            "jobs need a Spark session whose driver is this process; Spark Connect is not supported"
        ) from None
    return context.parallelize(tasks, len(tasks))


def _answer(work: Callable[[Any], Any], task: Any) -> tuple[bool, Any]:
    freeze_imports()
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
    freeze_imports()
    try:
        for group, place, result in work(task):
            yield (group, place), result
    except JobError as error:
        yield (FAILED, 0), error


def _merged(
    merge: Callable[[int, Iterator[Any]], Any], rows: Iterable[tuple[tuple[int, int], Any]]
) -> Iterator[tuple[int, tuple[bool, Any]]]:
    freeze_imports()
    for group, found in groupby(rows, lambda row: row[0][0]):
        results = (result for _, result in found)
        yield group, (False, next(results)) if group == FAILED else _answer(partial(merge, group), results)


def _collect(spark: Any, rdd: Any, label: str) -> list[Any]:
    with TaskProgress(spark, label):
        try:
            return list(rdd.collect())
        except Exception as error:
            text = first_sentence(error)
            raise TasksFailed(f"{label} failed: {text}", is_transient=is_of_machines(str(error))) from error
