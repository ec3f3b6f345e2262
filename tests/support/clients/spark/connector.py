"""Spark's own Kafka connector, batch and stream, reading and writing. The results are printed as one line of JSON.

    connector.py BOOTSTRAP TOPIC COPY JARS CHECKPOINT

TOPIC and COPY exist and are empty, with three and two partitions.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

ROWS = 300
PARTITIONS = 3


class Connector:
    def __init__(self, spark: SparkSession, bootstrap: str) -> None:
        self.spark = spark
        self.servers = {"kafka.bootstrap.servers": bootstrap}

    def rows(self, first: int, end: int) -> DataFrame:
        number = f.col("id").cast("string")
        header = f.struct(f.lit("n").alias("key"), number.cast("binary").alias("value"))
        return self.spark.range(first, end, numPartitions=2).select(
            f.concat(f.lit("key-"), number).alias("key"),
            f.concat(f.lit("value "), number).alias("value"),
            f.array(header).alias("headers"),
            (f.col("id") % PARTITIONS).cast("int").alias("partition"),
        )

    def write(self, rows: DataFrame, topic: str, codec: str) -> None:
        settings = {"topic": topic, "includeHeaders": "true", "kafka.compression.type": codec}
        rows.write.format("kafka").options(**self.servers, **settings).save()

    def read(self, topic: str, **options: str) -> DataFrame:
        return self.spark.read.format("kafka").options(**self.servers, **options).option("subscribe", topic).load()

    def copy(self, topic: str, target: str, checkpoint: str, **options: str) -> int:
        """Copy records that are new since the last copy to another topic, as a stream. Return the number of
        micro-batches.
        """
        source = self.spark.readStream.format("kafka").options(**self.servers, **options).option("subscribe", topic)
        query = (
            source.option("startingOffsets", "earliest")
            .load()
            .select("key", f.upper(f.col("value").cast("string")).alias("value"))
            .writeStream.format("kafka")
            .options(**self.servers, topic=target, checkpointLocation=checkpoint)
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination(100)
        if query.exception() or query.isActive:
            sys.exit(f"the stream did not end: {query.exception() or query.lastProgress}")
        return sum(1 for progress in query.recentProgress if progress.numInputRows)


def texts(rows: DataFrame) -> list[list[Any]]:
    """Return partition, offset, key and value of each row, in order."""
    columns = rows.selectExpr("partition", "offset", "CAST(key AS STRING)", "CAST(value AS STRING)")
    return sorted(list(row) for row in columns.collect())


def main(bootstrap: str, topic: str, copy: str, jars: str, checkpoint: str) -> None:
    builder = SparkSession.builder.master("local[2]").appName("connector").config("spark.jars", jars)
    for name, value in {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "512m",
    }.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    connector = Connector(spark, bootstrap)
    reported: dict[str, Any] = {}

    connector.write(connector.rows(0, ROWS), topic, "zstd")
    everything = connector.read(topic, includeHeaders="true")
    reported["records"] = texts(everything)
    reported["headers"] = sorted(
        int(row.n) for row in everything.selectExpr("CAST(headers[0].value AS STRING) AS n").collect()
    )
    part = {"startingOffsets": json.dumps({topic: {"0": 10, "1": -2, "2": ROWS // PARTITIONS}})}
    part["endingOffsets"] = json.dumps({topic: {"0": 20, "1": 5, "2": -1}})
    reported["part"] = [row[:2] for row in texts(connector.read(topic, **part))]
    latest = everything.agg(f.max("timestamp").cast("long")).first()
    assert latest is not None
    later = {"startingTimestamp": str((latest[0] + 60) * 1000), "startingOffsetsByTimestampStrategy": "latest"}
    reported["later"] = texts(connector.read(topic, **later))
    reported["splits"] = connector.read(topic, minPartitions="6").rdd.getNumPartitions()

    reported["first copy"] = connector.copy(topic, copy, checkpoint)
    connector.write(connector.rows(ROWS, ROWS + 60), topic, "lz4")
    reported["second copy"] = connector.copy(topic, copy, checkpoint, maxOffsetsPerTrigger="20")
    reported["third copy"] = connector.copy(topic, copy, checkpoint)
    reported["copied"] = sorted(row[3] for row in texts(connector.read(copy)))
    print(json.dumps(reported))
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
