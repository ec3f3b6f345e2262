"""The table's columns are those of Spark's Kafka source, and a schema chooses among them."""

from __future__ import annotations

import pytest

from tailrace.records.columnar import columns
from tailrace.spark.source.errors import WrongOption
from tailrace.spark.source.schema import chosen_columns, ddl, default_columns, wanted_bits


def test_the_seven_columns_of_sparks_source_in_their_order() -> None:
    assert ddl(default_columns(headers=False, batch_facts=False)) == (
        "`key` binary, `value` binary, `topic` string, `partition` int, `offset` bigint, "
        "`timestamp` timestamp, `timestampType` int"
    )


def test_more_columns_come_behind() -> None:
    names = [column.name for column in default_columns(headers=True, batch_facts=True)]
    assert names[7:10] == ["headers", "leaderEpoch", "producerId"]


def test_only_what_a_schema_names_is_decoded() -> None:
    chosen = chosen_columns([("value", "binary"), ("partition", "int")])
    assert wanted_bits(chosen) == columns.VALUE


def test_a_column_that_a_log_does_not_have_is_told() -> None:
    with pytest.raises(WrongOption, match="there is no column 'amount': the log has key, value"):
        chosen_columns([("amount", "double")])
    with pytest.raises(WrongOption, match="column 'value' is a binary, and the schema asks for string"):
        chosen_columns([("value", "string")])
