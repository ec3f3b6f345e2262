"""Spark reads logs in S3: every golden directory, as batch and as stream, compared with the same files on disk."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.golden import golden, golden_names
from tests.support.s3_server import S3Server, s3_server

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def s3() -> Iterator[S3Server]:
    pytest.importorskip("moto")
    with s3_server() as server:
        yield server


def rows(spark: Any, **options: str) -> list[Any]:
    frame = spark.read.format("tailrace").options(subscribePattern=".*", includeHeaders="true", **options).load()
    return sorted(frame.collect(), key=lambda row: (row.topic, row.partition, row.offset))


@pytest.mark.parametrize("name", [name for name in golden_names() if name != "crashed-bad-crc"])
def test_a_golden_directory_in_an_object_store_gives_the_same_rows(
    name: str, spark: Any, s3: S3Server, tmp_path: Path
) -> None:
    directory = golden(name).unpack(tmp_path)
    address = s3.upload(directory, f"golden-{name}").replace("s3://", "s3a://")
    level = {"kafka.isolation.level": "read_committed"}
    found = rows(spark, path=address, **s3.options, **level)
    assert found == rows(spark, path=str(directory), **level) != []


def test_a_stream_reads_segments_that_are_uploaded_later(spark: Any, s3: S3Server, tmp_path: Path) -> None:
    directory = golden("rolls").unpack(tmp_path / "data")
    segments = sorted((directory / "topic-0").glob("*.log"))
    later = [path for path in (directory / "topic-0").iterdir() if path.name >= segments[-1].stem and path.suffix]
    kept = tmp_path / "later" / "topic-0"
    kept.mkdir(parents=True)
    for path in later:
        path.rename(kept / path.name)
    address = s3.upload(directory, "stream")

    def run() -> list[int]:
        seen: list[int] = []
        query = (
            spark.readStream.format("tailrace")
            .options(path=address, subscribe="topic", startingOffsets="earliest", **s3.options)
            .load()
            .select("offset")
            .writeStream.foreachBatch(lambda batch, _: seen.extend(row.offset for row in batch.collect()))
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        try:
            assert query.awaitTermination(300)
        finally:
            query.stop()
        return sorted(seen)

    boundary = int(segments[-1].stem)
    first = run()
    assert first
    assert max(first) == boundary - 1
    s3.upload(tmp_path / "later", "stream")
    assert run() == [row.offset for row in rows(spark, path=address, **s3.options) if row.offset >= boundary]
