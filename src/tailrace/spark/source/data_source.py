"""LogDataSource: `spark.read.format("tailrace")` and `spark.readStream.format("tailrace")`.

    spark.read.format("tailrace").option("path", "/var/lib/tailrace").option("subscribe", "orders").load()

    spark.readStream.format("tailrace") \\
        .option("kafka.bootstrap.servers", "localhost:9092").option("subscribe", "orders").load()
"""

from __future__ import annotations

import logging
import sys

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader
from pyspark.sql.types import StructType

from tailrace.spark.source.batch_reader import FilteringLogReader, LogReader
from tailrace.spark.source.options import ReadOptions, read_options
from tailrace.spark.source.schema import chosen_columns, ddl, default_columns
from tailrace.spark.source.slice_reader import ReadPlan
from tailrace.spark.source.stream_reader import LogStreamReader

_log = logging.getLogger(__name__)
_PUSHDOWN_WORKER = "pyspark.sql.worker.data_source_pushdown_filters"


class LogDataSource(DataSource):
    @classmethod
    def name(cls) -> str:
        return "tailrace"

    def schema(self) -> str:
        options = {name.lower(): value for name, value in self.options.items()}
        headers = options.get("includeheaders", "").lower() == "true"
        batch_facts = options.get("includebatchfacts", "").lower() == "true"
        return ddl(default_columns(headers=headers, batch_facts=batch_facts))

    def reader(self, schema: StructType) -> DataSourceReader:
        options = read_options(dict(self.options), is_stream=False)
        # A reader that takes conditions is refused where spark.sql.python.filterPushdown.enabled is not set, and the
        # setting cannot be seen from here. Which of Spark's workers runs us can. And it has to be asked for: Spark 4.3
        # keeps what a DataFrame's first query pushed down and reads no more in a second one.
        can_push = options.push_filters and _PUSHDOWN_WORKER in sys.modules
        kind = FilteringLogReader if can_push else LogReader
        return kind(options, _plan(options, schema))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        options = read_options(dict(self.options), is_stream=True)
        return LogStreamReader(options, _plan(options, schema))


def _plan(options: ReadOptions, schema: StructType) -> ReadPlan:
    for warning in options.warnings:
        _log.warning("%s", warning)
    fields = [(field.name, field.dataType.simpleString()) for field in schema.fields]
    return ReadPlan(chosen_columns(fields), tuple(field.nullable for field in schema.fields), options.fail_on_data_loss)
