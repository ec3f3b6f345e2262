"""LogDataSource: `spark.read.format("tailrace")` and `readStream`; `df.write.format("tailrace")` and `writeStream`.

    spark.read.format("tailrace").option("path", "/var/lib/tailrace").option("subscribe", "orders").load()

    spark.readStream.format("tailrace") \\
        .option("kafka.bootstrap.servers", "localhost:9092").option("subscribe", "orders").load()
"""

from __future__ import annotations

import logging
import sys
from typing import TYPE_CHECKING

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)
from pyspark.sql.types import StructType

from tailrace.spark.source.batch_reader import (
    FilteringLimitedLogReader,
    FilteringLogReader,
    LimitedLogReader,
    LogReader,
)
from tailrace.spark.source.errors import WrongOption, message_only
from tailrace.spark.source.options import ReadOptions, read_options
from tailrace.spark.source.slice_reader import ReadPlan
from tailrace.spark.source.stream_reader import LogStreamReader
from tailrace.spark.source.table_columns import chosen_columns, ddl, default_columns

if TYPE_CHECKING:
    from tailrace.spark.sink.input_columns import InputColumns
    from tailrace.spark.sink.options import WriteOptions

_log = logging.getLogger(__name__)
_PUSHDOWN_WORKER = "pyspark.sql.worker.data_source_pushdown_filters"
_WRITE_WORKER = "pyspark.sql.worker.write_into_data_source"


class LogDataSource(DataSource):
    @classmethod
    def name(cls) -> str:
        return "tailrace"

    def schema(self) -> str:
        options = {name.lower(): value for name, value in self.options.items()}
        headers = options.get("includeheaders", "").lower() == "true"
        batch_facts = options.get("includebatchfacts", "").lower() == "true"
        return ddl(default_columns(headers=headers, batch_facts=batch_facts))

    @message_only()
    def reader(self, schema: StructType) -> DataSourceReader:
        options = read_options(dict(self.options), is_stream=False)
        if options.push_limit and not has_limits():
            _log.warning("pushLimit has no effect: this release of Spark does not pass limits to Python data sources")
        # Spark refuses a reader with pushFilters unless spark.sql.python.filterPushdown.enabled is set. The setting is
        # not visible here, but the worker module is. The option pushFilters is needed as well, because Spark 4.3 keeps
        # the conditions of a DataFrame's first query, and a second query would read too little.
        can_push = options.push_filters and _PUSHDOWN_WORKER in sys.modules
        kinds = {
            (False, False): LogReader,
            (True, False): FilteringLogReader,
            (False, True): LimitedLogReader,
            (True, True): FilteringLimitedLogReader,
        }
        return kinds[can_push, options.push_limit and has_limits()](options, _plan(options, schema))

    @message_only()
    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        options = read_options(dict(self.options), is_stream=True)
        return LogStreamReader(options, _plan(options, schema))

    # The sink is imported when it is used, so that queries that only read start faster.

    @message_only()
    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        from tailrace.spark.sink.writer import LogWriter

        return LogWriter(*self._write_plan(schema, overwrite, is_stream=False))

    @message_only()
    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802
        from tailrace.spark.sink.writer import LogStreamWriter

        # Spark creates a writer before a micro-batch in this worker, and another one for the commit in another worker.
        main = sys.modules["__main__"].__spec__
        is_for_tasks = _WRITE_WORKER in sys.modules or (main is not None and main.name == _WRITE_WORKER)
        plan = self._write_plan(schema, overwrite, is_stream=True)
        return LogStreamWriter(*plan, is_for_tasks=is_for_tasks)

    def _write_plan(self, schema: StructType, overwrite: bool, *, is_stream: bool) -> tuple[WriteOptions, InputColumns]:
        from tailrace.spark.sink.input_columns import input_columns
        from tailrace.spark.sink.options import write_options

        # A stream in complete mode appends all its rows each time, as with Spark's sink.
        if overwrite and not is_stream:
            raise WrongOption("a topic cannot be overwritten: use the mode append")
        options = write_options(dict(self.options), is_stream=is_stream)
        for warning in options.warnings:
            _log.warning("%s", warning)
        return options, input_columns(_fields(schema), options.topic)


def has_limits() -> bool:
    """Return True if the installed Spark passes a query's LIMIT to Python sources. Spark 4.3 does not."""
    return hasattr(DataSourceReader, "pushLimit")


def _plan(options: ReadOptions, schema: StructType) -> ReadPlan:
    for warning in options.warnings:
        _log.warning("%s", warning)
    return ReadPlan(
        chosen_columns(_fields(schema)), tuple(field.nullable for field in schema.fields), options.fail_on_data_loss
    )


def _fields(schema: StructType) -> list[tuple[str, str]]:
    return [(field.name, field.dataType.simpleString()) for field in schema.fields]
