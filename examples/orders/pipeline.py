"""The pipeline itself: two streaming queries over the topics `orders` and `payments`.

    `settled`   every order with its payment, or without one when it is too late for it     → the topic `settled`
    `revenue`   orders, paid orders and money for each country and five minutes             → the topic `revenue`

Both drop duplicates, join the topics by order within a bounded time, and use watermarks to decide when a result is
final. Only the format's name is specific to Tailrace. lake.py keeps an Iceberg table of the topic `settled`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  (the name that Spark's users know)
from pyspark.sql.streaming import StreamingQuery

from examples.orders.events import ORDERS, PAYMENTS

SETTLED: Final = "settled"
REVENUE: Final = "revenue"

# Events arrive at most 90 s late, and a micro-batch may read one partition a little ahead of another.
WATERMARK: Final = "3 minutes"
PAYMENT_TIME: Final = "5 minutes"
WINDOW: Final = "5 minutes"

_ORDER: Final = "order_id string, customer string, country string, product string, amount_cents long, ordered_ms long"
_PAYMENT: Final = "payment_id string, order_id string, method string, paid_ms long"


class Pipeline:
    """The inputs, outputs and checkpoints of the pipeline."""

    def __init__(self, spark: SparkSession, bootstrap: str, directory: Path, *, max_offsets: int = 4_000) -> None:
        self._spark = spark
        self._bootstrap = bootstrap
        self._directory = directory
        self._max_offsets = max_offsets

    def start(self, query: str, **trigger: Any) -> StreamingQuery:
        """Start one of the queries, from where it stopped."""
        rows = self._settled_records() if query == SETTLED else self.revenue()
        return (
            rows.writeStream.format("tailrace")  # exactly once: a repeated batch is not written twice
            .option("kafka.bootstrap.servers", self._bootstrap)
            .option("topic", query)
            .option("checkpointLocation", str(checkpoint(self._directory, query)))
            .queryName(query)
            .trigger(**(trigger or {"processingTime": "1 second"}))
            .start()
        )

    def _settled_records(self) -> DataFrame:
        """Return rows of key and value for a topic."""
        return self.settled().select(
            F.col("order_id").cast("binary").alias("key"), F.to_json(F.struct("*")).cast("binary").alias("value")
        )

    def settled(self) -> DataFrame:
        orders = self._events(ORDERS, _ORDER, "ordered_ms", "ordered_at", "order_id")
        payments = self._events(PAYMENTS, _PAYMENT, "paid_ms", "paid_at", "payment_id")
        payments = payments.withColumnRenamed("order_id", "paid_order_id")
        in_time = f"paid_at >= ordered_at AND paid_at <= ordered_at + INTERVAL {PAYMENT_TIME}"
        return orders.join(payments, F.expr(f"order_id = paid_order_id AND {in_time}"), "leftOuter").select(
            "order_id",
            "customer",
            "country",
            "product",
            "amount_cents",
            "ordered_at",
            "payment_id",
            "method",
            "paid_at",
        )

    def revenue(self) -> DataFrame:
        """Return rows of key and value for a topic."""
        window = F.window("ordered_at", WINDOW)
        paid = F.when(F.col("payment_id").isNotNull(), F.col("amount_cents"))
        sums = (
            self.settled()
            .groupBy(window, "country")
            .agg(
                F.count("*").alias("orders"),
                F.count("payment_id").alias("paid"),
                F.coalesce(F.sum(paid), F.lit(0)).alias("revenue_cents"),
            )
        )
        result = F.struct(
            F.unix_millis("window.start").alias("window_ms"), "country", "orders", "paid", "revenue_cents"
        )
        return sums.select(
            F.concat_ws("/", F.unix_millis("window.start").cast("string"), "country").cast("binary").alias("key"),
            F.to_json(result).cast("binary").alias("value"),
        )

    def _events(self, topic: str, schema: str, time_ms: str, time: str, identity: str) -> DataFrame:
        """Return a topic's events as columns, without duplicates."""
        raw = (
            self._spark.readStream.format("tailrace")
            .schema("value binary")  # columns that are not named are not decoded
            .option("kafka.bootstrap.servers", self._bootstrap)
            .option("subscribe", topic)
            .option("startingOffsets", "earliest")
            .option("maxOffsetsPerTrigger", self._max_offsets)
            .load()
        )
        parsed = raw.select(F.from_json(F.col("value").cast("string"), schema).alias("event")).select("event.*")
        timed = parsed.withColumn(time, F.timestamp_millis(time_ms)).drop(time_ms)
        return timed.withWatermark(time, WATERMARK).dropDuplicatesWithinWatermark([identity])


def checkpoint(directory: Path, query: str) -> Path:
    return directory / "checkpoints" / query
