"""The shop's orders as a declarative pipeline: a table that grows with the topic, a view over it, and a topic of large
orders.

The environment variable BOOTSTRAP names the broker; the default is localhost:9092.
"""

from __future__ import annotations

import os

from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  (the name that Spark's users know)

BOOTSTRAP = os.environ.get("BOOTSTRAP", "localhost:9092")
ORDER = "order_id string, customer string, country string, product string, amount_cents bigint, ordered_ms bigint"

spark = SparkSession.active()


@dp.table(comment="each order of the topic, as it arrives")
def orders() -> DataFrame:
    topic = (
        spark.readStream.format("tailrace")
        .option("kafka.bootstrap.servers", BOOTSTRAP)
        .option("subscribe", "orders")
        .option("startingOffsets", "earliest")
        .load()
    )
    return topic.select(F.from_json(F.col("value").cast("string"), ORDER).alias("order"), "partition", "offset").select(
        "order.*", "partition", "offset"
    )


@dp.materialized_view(comment="orders by country")
def by_country() -> DataFrame:
    once = spark.read.table("orders").dropDuplicates(["order_id"])
    return once.groupBy("country").agg(F.count("*").alias("orders"), F.sum("amount_cents").alias("amount_cents"))


dp.create_sink(
    "large_orders",
    "tailrace",
    # The name under which the sink remembers its writes: exactly once, whenever the pipeline runs.
    {"kafka.bootstrap.servers": BOOTSTRAP, "topic": "large-orders", "txnAppId": "declarative-orders"},
)


@dp.append_flow(target="large_orders", name="large_orders_to_topic")
def large_orders_to_topic() -> DataFrame:
    large = spark.readStream.table("orders").where("amount_cents >= 20000")
    return large.select(
        F.col("order_id").cast("binary").alias("key"), F.to_json(F.struct("order_id", "amount_cents")).alias("value")
    )
