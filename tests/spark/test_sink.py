"""The sink inside Spark: `df.write` and `writeStream`, a failing job, and error messages.

The protocol is tested without Spark at every point where it can break (tests/integration/test_spark_sink.py), and with
processes that are killed in test_sink_kills.py. These tests cover the integration with Spark.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from datetime import UTC
from pathlib import Path
from typing import Any

import pytest

import tailrace
from tests.support.filled_topics import numbered, put
from tests.support.sink_run import committed_values, open_end


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tailrace.Broker]:
    with tailrace.Broker(tmp_path_factory.mktemp("sink") / "data") as broker:
        yield broker


@pytest.fixture
def topics(broker: tailrace.Broker, request: pytest.FixtureRequest) -> tuple[str, str]:
    """Create two topics for this test."""
    name = request.node.name.replace("[", "-").rstrip("]")[:60]
    for topic in (f"{name}.a", f"{name}.b"):
        broker.create_topic(topic, partitions=3)
    return f"{name}.a", f"{name}.b"


@pytest.fixture(scope="module")
def reported(broker: tailrace.Broker) -> str:
    broker.create_topic("told", partitions=3)
    return "told"


def to(broker: tailrace.Broker, **more: str) -> dict[str, str]:
    return {"kafka.bootstrap.servers": broker.bootstrap, **more}


def write(rows: Any, **options: str) -> None:
    rows.write.format("tailrace").mode("append").options(**options).save()


def test_written_rows_are_read_back_unchanged(spark: Any, broker: tailrace.Broker, topics: tuple[str, str]) -> None:
    out, other = topics
    rows = spark.sql(f"""
        SELECT CAST(CAST(id AS STRING) AS BINARY) AS key, CAST(id * id AS STRING) AS value,
               IF(id % 5 = 0, '{other}', '{out}') AS topic, IF(id % 7 = 0, 2, NULL) AS partition,
               IF(id % 3 = 0, array(named_struct('key', 'h', 'value', CAST('x' AS BINARY))), NULL) AS headers,
               timestamp_millis(1700000000000 + id) AS timestamp
        FROM range(0, 1000, 1, 3)
    """)
    write(rows, **to(broker, **{"kafka.compression.type": "lz4", "kafka.batch.size": "2000"}))
    source = to(broker, subscribe=f"{out},{other}", includeHeaders="true", includeBatchFacts="true")
    found = spark.read.format("tailrace").options(**source).load().collect()
    assert sorted(int(row.key) for row in found) == list(range(1000))
    for row in found:
        number = int(row.key)
        assert row.value == str(number * number).encode()
        assert row.topic == (other if number % 5 == 0 else out)
        assert number % 7 or row.partition == 2
        assert (row.headers is None) == (number % 3 != 0)
        assert row.timestamp.replace(tzinfo=UTC).timestamp() * 1000 == pytest.approx(1_700_000_000_000 + number)
        assert row.isTransactional
        assert row.compression == "lz4"


def copy(spark: Any, broker: tailrace.Broker, source: str, sink: str, checkpoint: Path, **options: str) -> None:
    """Run a stream once, up to the current end of its source."""
    rows = spark.readStream.format("tailrace").options(
        **to(broker, subscribe=source, startingOffsets="earliest", maxOffsetsPerTrigger="20")
    )
    query = (
        rows.load()
        .select("key", "value")
        .writeStream.format("tailrace")
        .options(**to(broker, topic=sink, checkpointLocation=str(checkpoint), **options))
        .trigger(availableNow=True)
        .start()
    )
    try:
        assert query.awaitTermination(300)
    finally:
        query.stop()


@pytest.mark.slow
def test_a_micro_batch_that_spark_repeats_is_written_once(
    spark: Any, broker: tailrace.Broker, topics: tuple[str, str], tmp_path: Path
) -> None:
    source, sink = topics
    put(broker.bootstrap, source, 0, numbered(30))
    put(broker.bootstrap, source, 1, numbered(20, 100))
    copy(spark, broker, source, sink, tmp_path / "checkpoint")
    last = max((tmp_path / "checkpoint" / "commits").glob("[0-9]*"), key=lambda path: int(path.name))
    assert last.name == "2"
    last.with_name(".2.crc").unlink()
    last.unlink()  # simulate a driver that died between the sink's commit and its own
    put(broker.bootstrap, source, 1, numbered(5, 200))
    copy(spark, broker, source, sink, tmp_path / "checkpoint")
    assert Counter(committed_values(broker.bootstrap, sink)) == Counter(committed_values(broker.bootstrap, source))


@pytest.mark.slow
def test_an_at_least_once_stream_uses_no_transaction(
    spark: Any, broker: tailrace.Broker, topics: tuple[str, str], tmp_path: Path
) -> None:
    source, sink = topics
    put(broker.bootstrap, source, 0, numbered(30))
    copy(spark, broker, source, sink, tmp_path / "checkpoint", deliveryGuarantee="at-least-once")
    assert Counter(committed_values(broker.bootstrap, sink)) == Counter(committed_values(broker.bootstrap, source))
    facts = spark.read.format("tailrace").options(**to(broker, subscribe=sink, includeBatchFacts="true")).load()
    assert {(row.isTransactional, row.producerId >= 0) for row in facts.collect()} == {(False, True)}


def test_a_failed_job_leaves_no_visible_records(spark: Any, broker: tailrace.Broker, topics: tuple[str, str]) -> None:
    rows = spark.sql("""
        SELECT IF(id = 19000, raise_error('on purpose'), CAST(id AS STRING)) AS value FROM range(0, 20000, 1, 2)
    """)
    # A task may be killed before the driver knows that it has started. Its open transaction then times out.
    quick = {"kafka.batch.size": "1000", "kafka.transaction.timeout.ms": "5000"}
    with pytest.raises(Exception, match="on purpose"):
        write(rows, **to(broker, topic=topics[0], **quick))
    deadline = time.monotonic() + 60
    while set(open_end(broker.bootstrap, topics[0]).values()) != {0}:
        assert time.monotonic() < deadline
        time.sleep(0.2)
    assert committed_values(broker.bootstrap, topics[0]) == []


@pytest.mark.slow
def test_a_repeated_txn_version_is_written_once(spark: Any, broker: tailrace.Broker, topics: tuple[str, str]) -> None:
    rows = spark.range(0, 100, 1, 3).selectExpr("CAST(id AS STRING) AS value")
    for version in ("0", "0", "1", "1"):
        write(rows, **to(broker, topic=topics[0], txnAppId="nightly", txnVersion=version))
    assert Counter(Counter(committed_values(broker.bootstrap, topics[0])).values()) == Counter({2: 100})


@pytest.mark.parametrize(
    ("columns", "options", "sentence"),
    [
        ("id AS value", {}, "column 'value' has type bigint; it must be binary or string"),
        ("'v' AS worth", {}, "the column 'value' is missing"),
        ("'v' AS value", {"topic": "nowhere"}, "there is no topic 'nowhere' at 127.0.0.1:"),
        ("'v' AS value, 7 AS partition", {}, "a row has partition 7, but .* has only the partitions 0 to 2"),
        ("'v' AS value", {"kafka.compresion.type": "lz4"}, "did you mean kafka.compression.type"),
        ("repeat('v', 2000000) AS value", {}, "refused a batch of 20000.. bytes: .*MESSAGE_TOO_LARGE"),
        ("'v' AS value", {"kafka.bootstrap.servers": "127.0.0.1:9"}, "no broker can be reached at 127.0.0.1:9"),
    ],
)  # fmt: skip
def test_wrong_options_and_rows_are_reported_in_one_sentence(
    spark: Any, broker: tailrace.Broker, reported: str, columns: str, options: dict[str, str], sentence: str
) -> None:  # fmt: skip
    with pytest.raises(Exception, match=sentence):
        write(spark.sql(f"SELECT {columns} FROM range(1)"), **{**to(broker, topic=reported), **options})
