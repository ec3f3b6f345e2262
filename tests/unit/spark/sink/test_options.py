"""The options of the sink, and warnings and errors about wrong ones."""

from __future__ import annotations

import pytest

from tailrace.records.batch import Codec
from tailrace.spark.sink.errors import UnwritableRows
from tailrace.spark.sink.input_columns import InputColumns, input_columns
from tailrace.spark.sink.options import write_options
from tailrace.spark.source.errors import WrongOption

STREAM = {"kafka.bootstrap.servers": "localhost:9092", "checkpointLocation": "/checkpoints/orders"}


def test_the_transactional_id_of_a_stream_comes_from_its_checkpoint() -> None:
    names = {
        write_options({**STREAM, "checkpointLocation": place}, is_stream=True).transactional_id
        for place in ("/checkpoints/orders", "/checkpoints/orders/", "file:///checkpoints/orders")
    }
    assert len(names) == 1
    assert names.pop().startswith("tailrace-spark-")
    other = write_options({**STREAM, "checkpointLocation": "/checkpoints/payments"}, is_stream=True)
    assert other.transactional_id not in names


def test_txn_app_id_sets_the_transactional_id() -> None:
    given = {**STREAM, "txnAppId": "orders", "transactionalIdPrefix": "team-a"}
    assert write_options(given, is_stream=True).transactional_id == "team-a-orders"


def test_each_batch_job_has_its_own_transactional_id() -> None:
    given = {"kafka.bootstrap.servers": "localhost:9092"}
    names = {write_options(given, is_stream=False).transactional_id for _ in range(3)}
    assert len(names) == 3


def test_write_options_are_parsed() -> None:
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
    assert options.warnings == ("kafka.linger.ms has no effect: it tunes a Java producer, and the sink has none",)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({}, "kafka.bootstrap.servers is missing"),
        ({"kafka.bootstrap.servers": "localhost:9092"}, "set the option checkpointLocation of this writer"),
        ({**STREAM, "kafka.acks": "1"}, "kafka.acks is '1'; it must be all or -1"),
        ({**STREAM, "kafka.enable.idempotence": "false"}, "must not be written twice"),
        ({**STREAM, "deliveryGuarantee": "maybe"}, "it must be exactly-once or at-least-once"),
        ({**STREAM, "kafka.transactional.id": "mine"}, "set their prefix with transactionalIdPrefix"),
        ({**STREAM, "txnAppId": "a b"}, "it may have only letters, digits"),
        ({**STREAM, "txnVersion": "3"}, "a stream numbers its micro-batches itself"),
        ({**STREAM, "kafka.bach.size": "3"}, "there is no option kafka.bach.size; did you mean kafka.batch.size"),
        ({**STREAM, "topic": " "}, "topic is empty"),
    ],
)
def test_a_wrong_write_option_is_reported_by_name(given: dict[str, str], sentence: str) -> None:
    with pytest.raises(WrongOption, match=sentence):
        write_options(given, is_stream=True)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"txnAppId": "a"}, "txnAppId and txnVersion must be set together"),
        ({"txnVersion": "1"}, "txnAppId and txnVersion must be set together"),
        ({"txnAppId": "a", "txnVersion": "x"}, "txnVersion is 'x'; it must be a whole number of at least 0"),
    ],
)
def test_txn_version_needs_txn_app_id_and_a_number(given: dict[str, str], sentence: str) -> None:
    with pytest.raises(WrongOption, match=sentence):
        write_options({"kafka.bootstrap.servers": "localhost:9092", **given}, is_stream=False)


def test_columns_are_found_by_name_and_others_are_ignored() -> None:
    fields = [("offset", "bigint"), ("value", "binary"), ("key", "string"), ("partition", "int"), ("topic", "string")]
    assert input_columns(fields, None) == InputColumns(value=1, key=2, topic=4, partition=3)
    assert input_columns(fields, "orders").topic is None  # the option overrides the column, as with Spark's sink


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ([("value", "int")], "column 'value' has type int; it must be binary or string"),
        ([("key", "binary")], "the column 'value' is missing; the columns are: key"),
        ([("value", "binary")], "set the option 'topic', or add a column 'topic'"),
        (
            [("value", "binary"), ("headers", "map<string,binary>")],
            "it must be array<struct<key:string,value:binary>>",
        ),
    ],
)
def test_columns_that_cannot_make_records_are_refused(fields: list[tuple[str, str]], sentence: str) -> None:
    with pytest.raises(UnwritableRows, match=sentence):
        input_columns(fields, None)
