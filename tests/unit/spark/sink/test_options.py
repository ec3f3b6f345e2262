"""What the sink's options mean, and what is said about those that mean nothing."""

from __future__ import annotations

import pytest

from tailrace.records.batch import Codec
from tailrace.spark.sink.errors import UnwritableRows
from tailrace.spark.sink.input_columns import InputColumns, input_columns
from tailrace.spark.sink.options import write_options
from tailrace.spark.source.errors import WrongOption

STREAM = {"kafka.bootstrap.servers": "localhost:9092", "checkpointLocation": "/checkpoints/orders"}


def test_a_streams_name_comes_from_its_checkpoint_and_stays() -> None:
    names = {
        write_options({**STREAM, "checkpointLocation": place}, is_stream=True).transactional_id
        for place in ("/checkpoints/orders", "/checkpoints/orders/", "file:///checkpoints/orders")
    }
    assert len(names) == 1
    assert names.pop().startswith("tailrace-spark-")
    other = write_options({**STREAM, "checkpointLocation": "/checkpoints/payments"}, is_stream=True)
    assert other.transactional_id not in names


def test_a_name_can_be_given() -> None:
    given = {**STREAM, "txnAppId": "orders", "transactionalIdPrefix": "team-a"}
    assert write_options(given, is_stream=True).transactional_id == "team-a-orders"


def test_each_batch_job_has_a_name_of_its_own() -> None:
    given = {"kafka.bootstrap.servers": "localhost:9092"}
    names = {write_options(given, is_stream=False).transactional_id for _ in range(3)}
    assert len(names) == 3


def test_options_that_are_used() -> None:
    given = {
        **STREAM,
        "TOPIC": "orders",
        "kafka.compression.type": "zstd",
        "kafka.compression.zstd.level": "7",
        "kafka.batch.size": "1000",
        "kafka.transaction.timeout.ms": "60000",
        "kafka.delivery.timeout.ms": "5000",
        "kafka.acks": "-1",
        "deliveryGuarantee": "at-least-once",
        "kafka.linger.ms": "5",
    }
    options = write_options(given, is_stream=True)
    assert (options.topic, options.codec, options.level, options.batch_size) == ("orders", Codec.ZSTD, 7, 1000)
    assert (options.transaction_timeout_ms, options.settings.total_timeout_ms) == (60_000, 5_000)
    assert not options.is_exactly_once
    assert options.warnings == ("kafka.linger.ms has no effect: it tunes a Java producer, and there is none here",)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({}, "kafka.bootstrap.servers does not say where to write to"),
        ({"kafka.bootstrap.servers": "localhost:9092"}, "give this writer the option checkpointLocation"),
        ({**STREAM, "kafka.acks": "1"}, "kafka.acks is '1': it takes all or -1"),
        ({**STREAM, "kafka.enable.idempotence": "false"}, "must not be there twice"),
        ({**STREAM, "deliveryGuarantee": "maybe"}, "it takes exactly-once or at-least-once"),
        ({**STREAM, "kafka.transactional.id": "mine"}, "transactionalIdPrefix says how they begin"),
        ({**STREAM, "txnAppId": "a b"}, "it takes letters, digits"),
        ({**STREAM, "txnVersion": "3"}, "a stream numbers its micro-batches itself"),
        ({**STREAM, "kafka.bach.size": "3"}, "there is no option kafka.bach.size; is kafka.batch.size meant"),
        ({**STREAM, "topic": " "}, "topic is empty"),
    ],
)
def test_what_is_wrong_is_told_with_its_name(given: dict[str, str], sentence: str) -> None:
    with pytest.raises(WrongOption, match=sentence):
        write_options(given, is_stream=True)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"txnAppId": "a"}, "txnAppId and txnVersion belong together"),
        ({"txnVersion": "1"}, "txnAppId and txnVersion belong together"),
        ({"txnAppId": "a", "txnVersion": "x"}, "txnVersion is 'x': it takes a whole number from 0 on"),
    ],
)
def test_a_version_needs_a_name_and_a_number(given: dict[str, str], sentence: str) -> None:
    with pytest.raises(WrongOption, match=sentence):
        write_options({"kafka.bootstrap.servers": "localhost:9092", **given}, is_stream=False)


def test_columns_are_found_by_name_and_others_left_aside() -> None:
    fields = [("offset", "bigint"), ("value", "binary"), ("key", "string"), ("partition", "int"), ("topic", "string")]
    assert input_columns(fields, None) == InputColumns(value=1, key=2, topic=4, partition=3)
    assert input_columns(fields, "orders").topic is None  # the option goes first, as with Spark's sink


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ([("value", "int")], "column 'value' is of type int, and has to be binary or string"),
        ([("key", "binary")], "there is no column 'value': it holds the records, and the columns are key"),
        ([("value", "binary")], "neither an option nor a column 'topic'"),
        (
            [("value", "binary"), ("headers", "map<string,binary>")],
            "has to be array<struct<key:string,value:binary>>",
        ),
    ],
)
def test_columns_of_which_no_records_can_be_made(fields: list[tuple[str, str]], sentence: str) -> None:
    with pytest.raises(UnwritableRows, match=sentence):
        input_columns(fields, None)
