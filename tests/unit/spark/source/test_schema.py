"""The columns are those of Spark's Kafka source; a schema selects some of them."""

from __future__ import annotations

import pytest

from tailrace.records.columnar import columns
from tailrace.spark.source.errors import WrongOption
from tailrace.spark.source.table_columns import chosen_columns, ddl, default_columns, wanted_bits


def test_the_seven_columns_of_sparks_source_in_their_order() -> None:
    assert ddl(default_columns(headers=False, batch_facts=False)) == (
        "`key` binary, `value` binary, `topic` string, `partition` int, `offset` bigint, "
        "`timestamp` timestamp, `timestampType` int"
    )


def test_headers_and_batch_facts_follow_the_seven_columns() -> None:
    names = [column.name for column in default_columns(headers=True, batch_facts=True)]
    assert names[7:10] == ["headers", "leaderEpoch", "producerId"]


def test_only_the_columns_of_a_schema_are_decoded() -> None:
    chosen = chosen_columns([("value", "binary"), ("partition", "int")])
    assert wanted_bits(chosen) == columns.VALUE


def test_an_unknown_column_is_reported() -> None:
    with pytest.raises(WrongOption, match="there is no column 'amount'; the columns are key, value"):
        chosen_columns([("amount", "double")])
    with pytest.raises(WrongOption, match="column 'value' has type binary, but the schema has string"):
        chosen_columns([("value", "string")])
