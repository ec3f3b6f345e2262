"""The main job: a broker, a shop that feeds it, Spark's pipeline, a display of the progress; then the check."""

from __future__ import annotations

import contextlib
import json
import re
import time
from concurrent.futures import Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any, Final

from examples.orders.broker_process import BrokerProcess
from examples.orders.checker import check, values_of
from examples.orders.display import Display, Picture, QueryState, result_lines
from examples.orders.events import ORDERS, PAYMENTS
from examples.orders.expected import Revenue, WindowKey
from examples.orders.feeder import PARTITIONS, Feeder, create_topics
from examples.orders.lake import TABLE, Lake
from examples.orders.pipeline import REVENUE, SETTLED, Pipeline
from examples.orders.session import local_session
from tailrace.client.cluster.cluster_client import ClusterClient
from tailrace.client.offsets import latest_offsets
from tailrace.model.ids import TopicPartition

QUERIES: Final = (SETTLED, REVENUE)
_RESTARTS_MAX: Final = 5
_FIRST_EVENTS: Final = 2_000
_REFRESH_S: Final = 1.0
_CATCH_UP_S: Final = 90.0


class Failed(Exception):
    """An error that ends the job; its message is one sentence."""


class Job:
    def __init__(self, directory: Path, display: Display, *, seed: int, rate: float, seconds: float | None) -> None:
        self._directory = directory
        self._display = display
        self._seed = seed
        self._rate = rate
        self._seconds = seconds  # None: until Ctrl-C
        self._began = time.monotonic()
        self._end_s: float | None = None
        self._pipeline: Pipeline | None = None
        self._lake: Lake | None = None
        self._spark_thread = ThreadPoolExecutor(1, "spark")
        self._queries: dict[str, Any] = {}
        self._restarts = 0
        self._results_end = -1
        self._results_read = 0
        self._results: dict[WindowKey, Revenue] = {}

    def run(self) -> bool:
        """Run to the end, and return True if every result is correct."""
        with BrokerProcess(self._directory) as broker, ClusterClient(broker.bootstrap) as cluster:
            self._display.log(f"broker: {broker.bootstrap}, its data in {self._directory / 'broker'}")
            create_topics(cluster, ORDERS, PAYMENTS, SETTLED, REVENUE)
            before = sum(count for _, count in self._counts(cluster))
            self._display.log(f"resuming after {before:,} records" if before else "starting with empty topics")
            # Spark needs long to start, especially on a small machine, so only few events are fed before.
            feeder = Feeder(broker.bootstrap, seed=self._seed, rate=self._rate, limit=_FIRST_EVENTS)
            feeder.start()
            spark = None
            try:
                with contextlib.suppress(KeyboardInterrupt):
                    spark = self._start_spark(broker.bootstrap, cluster, feeder)
                    self._watch(broker.bootstrap, cluster, feeder)
                feeder.end()
                if spark is None:
                    return True  # interrupted before there was a pipeline: there is nothing to check
                with contextlib.suppress(KeyboardInterrupt):
                    self._catch_up(broker.bootstrap, cluster, feeder)
                for query in self._queries.values():
                    query.stop()
                return self._summary(broker.bootstrap, cluster, feeder)
            finally:
                feeder.end()
                if self._lake is not None:
                    self._lake.stop()
                if spark is not None:
                    spark.stop()
                self._spark_thread.shutdown()

    def _start_spark(self, bootstrap: str, cluster: ClusterClient, feeder: Feeder) -> Any:
        """Start Spark, which takes a while, and keep the display up to date meanwhile."""

        def shown_until(work: Future[Any]) -> Any:
            while not work.done():
                self._show(bootstrap, cluster, feeder)
                wait([work], _REFRESH_S)
            return work.result()

        spark = shown_until(self._spark_thread.submit(local_session, self._directory / "scratch"))
        self._pipeline = Pipeline(spark, bootstrap, self._directory)
        # One after the other: a query starts a Python process for each of its sources, and Spark waits at most ten
        # seconds for each.
        for name in QUERIES:
            self._queries[name] = shown_until(self._start_query(name))
            while self._queries[name].lastProgress is None and self._queries[name].isActive:
                self._show(bootstrap, cluster, feeder)
                time.sleep(_REFRESH_S)
        self._lake = Lake(spark, bootstrap, self._directory)
        self._lake.start()
        return spark

    def _restart(self, name: str, query: Any) -> None:
        """Start a query that ended again, like a service. It resumes from its checkpoint."""
        why = _cause(query.exception())
        self._restarts += 1
        if self._restarts > _RESTARTS_MAX:
            raise Failed(f"query {name} ended: {why}")
        self._display.log(f"query {name} ended and is started again: {why}")
        self._queries[name] = self._start_query(name).result()

    def _start_query(self, name: str) -> Future[Any]:
        """Start a query in the thread that made the session: in other threads Spark does not find a Python data source
        to write to.
        """
        assert self._pipeline is not None
        return self._spark_thread.submit(self._pipeline.start, name)

    def _watch(self, bootstrap: str, cluster: ClusterClient, feeder: Feeder) -> None:
        feeder.limit = None
        # The requested time counts for the pipeline, without its start.
        self._end_s = None if self._seconds is None else time.monotonic() + self._seconds
        while self._end_s is None or time.monotonic() < self._end_s:
            self._show(bootstrap, cluster, feeder)
            time.sleep(_REFRESH_S)

    def _catch_up(self, bootstrap: str, cluster: ClusterClient, feeder: Feeder) -> None:
        """Wait until the queries have read all records."""
        self._end_s = time.monotonic() + _CATCH_UP_S
        fed = dict(self._counts(cluster))
        while time.monotonic() < self._end_s and not all(_is_done(query, fed) for query in self._queries.values()):
            self._show(bootstrap, cluster, feeder)
            time.sleep(_REFRESH_S)

    def _show(self, bootstrap: str, cluster: ClusterClient, feeder: Feeder) -> None:
        if feeder.failure is not None:
            raise Failed(f"the shop's events cannot be written to the broker: {feeder.failure}")
        if self._lake is not None and self._lake.failure is not None:
            raise Failed(f"table {TABLE} cannot be kept up to date: {self._lake.failure}")
        for name, query in list(self._queries.items()):
            if query.exception() is not None:
                self._restart(name, query)
        now = time.monotonic()
        counts = self._records(cluster)
        if self._lake is not None:
            counts.append((f"table {TABLE}", self._lake.rows))
        self._display.show(
            Picture(
                now - self._began,
                None if self._end_s is None else max(0.0, self._end_s - now),
                bootstrap,
                counts,
                feeder.shop_time_ms,
                [QueryState.of(name, _progress(query)) for name, query in self._queries.items()],
                self._results,
            )
        )

    def _counts(self, cluster: ClusterClient) -> list[tuple[str, int]]:
        partitions = [TopicPartition(topic, n) for topic in (ORDERS, PAYMENTS, REVENUE) for n in range(PARTITIONS)]
        ends = latest_offsets(cluster, partitions)
        return [
            (topic, sum(end for partition, end in ends.items() if partition.topic == topic))
            for topic in (ORDERS, PAYMENTS, REVENUE)
        ]

    def _records(self, cluster: ClusterClient) -> list[tuple[str, int]]:
        """Return the number of records in each topic. Offsets of result topics include transaction markers, so those
        are read.
        """
        ends = dict(self._counts(cluster))
        if ends[REVENUE] != self._results_end:
            self._results_end = ends[REVENUE]
            found = [json.loads(value) for value in values_of(cluster, REVENUE)]
            self._results_read = len(found)
            self._results = {
                (one["window_ms"], one["country"]): Revenue(one["orders"], one["paid"], one["revenue_cents"])
                for one in found
            }
        return [*((topic, ends[topic]) for topic in (ORDERS, PAYMENTS)), (REVENUE, self._results_read)]

    def _summary(self, bootstrap: str, cluster: ClusterClient, feeder: Feeder) -> bool:
        log = self._display.log
        records = self._records(cluster)
        log("")
        for line in result_lines(self._results) if self._results else ["no window of five minutes is over yet"]:
            log(line)
        log("")
        took = time.monotonic() - self._began
        log(f"{feeder.sent:,} events were fed in {took:.0f} s; the topics hold " + _held(records))
        assert self._lake is not None
        self._lake.stop()
        self._lake.complete()
        verdicts = check(bootstrap, self._directory)
        for verdict in verdicts:
            log(str(verdict))
        return all(verdict.is_right for verdict in verdicts)


def _held(counts: list[tuple[str, int]]) -> str:
    return ", ".join(f"{count:,} {name}" for name, count in counts)


def _progress(query: Any) -> dict[str, Any] | None:
    """Return the last progress report, with offsets as objects even if Spark returns text."""
    report = query.lastProgress
    if report is None:
        return None
    found: dict[str, Any] = json.loads(report.json)
    return found


def _cause(error: Any) -> str:
    """Return the reason why a query ended, without Spark's stack traces."""
    text = str(error)
    causes = re.findall(r"^Caused by: (.+)$", text, re.MULTILINE)
    causes += re.findall(r"terminated with exception: (.+?)(?: SQLSTATE: \w+)?$", text, re.MULTILINE)
    return str(causes[0]) if causes else text.strip().splitlines()[0]


def _is_done(query: Any, fed: dict[str, int]) -> bool:
    """Return True if a query has read all fed events and no batch is running, so that stopping it cancels nothing."""
    progress = _progress(query)
    if progress is None or query.status["isTriggerActive"]:
        return False
    read: dict[str, int] = {}
    for source in progress["sources"]:
        for topic, partitions in (source.get("endOffset") or {}).items():
            read[topic] = sum(partitions.values())
    return all(read.get(topic, 0) >= fed[topic] for topic in (ORDERS, PAYMENTS))
