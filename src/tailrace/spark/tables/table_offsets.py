"""The end offsets of a table, for a query that continues there: `startingOffsets=table:PLACE`.

A place with a slash is a Delta table, such as `table:s3://lake/orders`. A place that ends with `.metadata.json` is the
metadata of an Iceberg table. Any other place is an Iceberg table in a catalog. `table:shop.orders` is in the default
catalog, and `table:lake:shop.orders` is in the catalog lake.
"""

from __future__ import annotations

from collections.abc import Iterable

from tailrace.model.ids import TopicPartition
from tailrace.spark.jobs.errors import JobError
from tailrace.spark.jobs.spark_session import first_sentence
from tailrace.spark.tables.table_ends import TableEnds


def table_ends(place: str, partitions: Iterable[TopicPartition]) -> TableEnds:
    """Return the ends that a table has for partitions. Raise JobError if the table cannot be read."""
    if place.endswith(".metadata.json"):
        return _ends_in_metadata(place)
    if "/" in place or place in (".", ".."):
        from tailrace.spark.tables.formats.delta import DeltaTable

        return DeltaTable(place).ends(partitions)
    from tailrace.spark.tables.formats.iceberg import IcebergTable

    catalog, _, name = place.rpartition(":")
    return IcebergTable(name, catalog or None).ends(partitions)


def _ends_in_metadata(location: str) -> TableEnds:
    try:
        from pyiceberg.table import StaticTable
    except ImportError:
        raise JobError("Iceberg tables need pyiceberg: pip install 'tailrace[iceberg]'") from None
    from tailrace.spark.tables.formats.iceberg import snapshot_ends

    try:
        table = StaticTable.from_metadata(location)
    except Exception as error:
        raise JobError(f"{location} cannot be read: {first_sentence(error)}") from error
    return snapshot_ends(table)
