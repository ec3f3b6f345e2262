"""Errors of the source and the sink in Spark: the sentence is in the first two lines, without a stack of Python."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tailrace.spark import session
from tests.support.command import write_directory

UNREACHABLE = {"kafka.bootstrap.servers": "127.0.0.1:1", "subscribe": "orders"}
NOT_QUERIED = "the cluster at 127.0.0.1:1 cannot be queried: no broker can be reached at 127.0.0.1:1"


def beginning(run: Callable[[], object]) -> str:
    with pytest.raises(Exception, match=r"\w") as failed:
        run()
    text = str(failed.value)
    assert "Traceback" not in text
    return " ".join(text.splitlines()[:2])


def load(spark: Any, options: dict[str, str]) -> Any:
    return spark.read.format("tailrace").options(**options).load()


def test_a_wrong_option_is_named_at_the_beginning(spark: Any) -> None:
    text = beginning(load(spark, {**UNREACHABLE, "startingoffset": "x"}).count)
    assert "WrongOption: there is no option startingoffset; did you mean startingOffsets?" in text


def test_an_unreachable_cluster_is_named_at_the_beginning_of_a_batch_a_stream_and_a_write(
    spark: Any, tmp_path: Path
) -> None:
    assert NOT_QUERIED in beginning(load(spark, UNREACHABLE).count)
    stream = spark.readStream.format("tailrace").options(**UNREACHABLE).load().writeStream.format("noop")
    query = stream.option("checkpointLocation", str(tmp_path / "checkpoint")).start()
    assert NOT_QUERIED in beginning(lambda: query.awaitTermination(60))
    rows = spark.sql("SELECT 'x' AS value").write.format("tailrace").mode("append")
    text = beginning(rows.options(**{"kafka.bootstrap.servers": "127.0.0.1:1", "topic": "orders"}).save)
    assert "no broker can be reached at 127.0.0.1:1" in text


def test_damage_that_a_task_finds_is_named_at_the_beginning(spark: Any, tmp_path: Path) -> None:
    data = write_directory(tmp_path / "data", "plain")
    (log,) = [path for path in sorted((data / "plain-0").glob("*.log")) if path.name.startswith("0" * 20)]
    damaged = bytearray(log.read_bytes())
    damaged[70] ^= 1
    log.write_bytes(damaged)
    text = beginning(load(spark, {"path": str(data), "subscribe": "plain"}).select("value").collect)
    assert "DamagedLog: plain-0 is damaged at offset 0 or after it" in text


def test_a_thread_without_an_active_session_gets_the_one_that_runs(spark: Any) -> None:
    before = spark.conf.get("spark.sql.session.timeZone")
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(session(config={"spark.sql.session.timeZone": "Asia/Tokyo"})))
    thread.start()
    thread.join()
    assert spark.conf.get("spark.sql.session.timeZone") == before
    assert found[0].sparkContext is spark.sparkContext
    assert beginning(load(found[0], {**UNREACHABLE, "startingoffset": "x"}).count)
