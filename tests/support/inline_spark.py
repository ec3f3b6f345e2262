"""A fake Spark for tests with hundreds of runs: an RDD is a list, and a stage is a loop.

It has only the methods that the framework of jobs uses. Values are pickled between stages, as in Spark.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator
from typing import Any


class InlineRdd:
    def __init__(self, partitions: list[list[Any]]) -> None:
        self._partitions = partitions

    def _over(self, work: Callable[[Iterator[Any]], Iterable[Any]]) -> InlineRdd:
        travelled = pickle.loads(pickle.dumps(self._partitions))
        return InlineRdd([list(work(iter(rows))) for rows in travelled])

    def map(self, work: Callable[[Any], Any]) -> InlineRdd:
        return self._over(lambda rows: (work(row) for row in rows))

    def flatMap(self, work: Callable[[Any], Iterable[Any]]) -> InlineRdd:  # noqa: N802
        return self._over(lambda rows: (found for row in rows for found in work(row)))

    def mapPartitions(self, work: Callable[[Iterator[Any]], Iterable[Any]]) -> InlineRdd:  # noqa: N802
        return self._over(work)

    def union(self, other: InlineRdd) -> InlineRdd:
        return InlineRdd(self._partitions + other._partitions)

    def groupByKey(self, count: int, place: Callable[[Any], int] = hash) -> InlineRdd:  # noqa: N802
        """Group by key. Spark guarantees no order inside a group, so this one reverses it."""
        groups: dict[Any, list[Any]] = {}
        for key, value in reversed(self.collect()):
            groups.setdefault(key, []).append(value)
        return InlineRdd(
            [[(key, found) for key, found in groups.items() if place(key) % count == number] for number in range(count)]
        )

    def repartitionAndSortWithinPartitions(self, count: int, place: Callable[[Any], int]) -> InlineRdd:  # noqa: N802
        rows = sorted(self.collect(), key=lambda row: row[0])
        return InlineRdd([[row for row in rows if place(row[0]) % count == number] for number in range(count)])

    def persist(self, level: object) -> InlineRdd:
        return self

    def unpersist(self) -> None:
        pass

    def collect(self) -> list[Any]:
        return [row for rows in self._partitions for row in rows]


class InlineSpark:
    @property
    def sparkContext(self) -> InlineSpark:  # noqa: N802
        return self

    def parallelize(self, values: Iterable[Any], count: int) -> InlineRdd:
        rows = list(values)
        return InlineRdd([rows[number::count] for number in range(count)] if count > 1 else [rows])
