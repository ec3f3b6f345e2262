"""The lake: orders with their payments as an Iceberg table, which follows a topic. Its catalog is a SQLite file.

    a topic  →  TableExport  →  TABLE in .run/lake, for DuckDB, Polars, pyiceberg, Trino, Spark, …

`tailrace job export --to iceberg --follow` does the same from a command line.
"""

from __future__ import annotations

from pathlib import Path
from threading import Event, Thread
from typing import Any, Final

from examples.orders.pipeline import SETTLED
from tailrace.spark.jobs.errors import JobError
from tailrace.spark.jobs.place import Place
from tailrace.spark.tables.follow import Follower, FollowPolicy, Progress
from tailrace.spark.tables.formats.iceberg import IcebergTable
from tailrace.spark.tables.table_export import ExportSettings, TableExport, export_once
from tailrace.spark.tables.topic_source import TopicSource
from tailrace.spark.typed.typed_rows import TypedRows
from tailrace.spark.typed.value_format import ValueFormat

CATALOG: Final = "default"
TABLE: Final = "shop.settled"
COLUMNS: Final = (
    "order_id STRING, customer STRING, country STRING, product STRING, amount_cents BIGINT, ordered_at TIMESTAMP, "
    "payment_id STRING, method STRING, paid_at TIMESTAMP"
)
_FRESHNESS_S: Final = 5.0


class Lake:
    """Follows the topic in a thread of its own, until `stop`."""

    def __init__(self, spark: Any, bootstrap: str, directory: Path) -> None:
        self._spark = spark
        self._bootstrap = bootstrap
        self._directory = directory
        self._stopped = Event()
        self._thread = Thread(target=self._follow, name="lake")
        self.failure: JobError | None = None
        self.rows = 0  # that the follower has added

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """End the follower after its running round."""
        self._stopped.set()
        self._thread.join()

    def complete(self) -> None:
        """Add the rows that the topic has now."""
        with self._source() as source:
            export_once(self._export(source))

    def _follow(self) -> None:
        policy = FollowPolicy(freshness_s=_FRESHNESS_S)
        try:
            with self._source() as source:
                Follower(self._export(source), policy, report=self._note).run(self._stopped)
        except JobError as error:
            self.failure = error

    def _note(self, progress: Progress) -> None:
        self.rows = progress.total.records

    def _source(self) -> TopicSource:
        return TopicSource(Place(bootstrap=self._bootstrap), [SETTLED])

    def _export(self, source: TopicSource) -> TableExport:
        table = IcebergTable(TABLE, CATALOG, catalog_properties(self._directory))
        form = TypedRows(ValueFormat("json", COLUMNS.encode()))
        return TableExport(self._spark, source, table, ExportSettings(form=form))


def catalog_properties(directory: Path) -> dict[str, str]:
    """Return the properties of the catalog for pyiceberg, and make its directory."""
    lake = directory / "lake"
    lake.mkdir(parents=True, exist_ok=True)
    return {"type": "sql", "uri": f"sqlite:///{lake}/catalog.db", "warehouse": f"file://{lake}"}


def settled_rows(directory: Path) -> list[dict[str, Any]]:
    """Return the rows of the table, as pyiceberg reads them."""
    from pyiceberg.catalog import load_catalog
    from pyiceberg.exceptions import NoSuchTableError

    try:
        table = load_catalog(CATALOG, **catalog_properties(directory)).load_table(TABLE)
    except NoSuchTableError:
        return []
    found: list[dict[str, Any]] = table.scan().to_arrow().to_pylist()
    return found
