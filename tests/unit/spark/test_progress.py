from __future__ import annotations

from tailrace.model.ids import TopicPartition
from tailrace.spark.progress import partition_lags


def test_lags_are_computed_from_the_offsets_of_a_report() -> None:
    orders = {"endOffset": {"orders": {"0": 5, "1": 7}}, "latestOffset": {"orders": {"0": 9, "1": 7, "2": 3}}}
    payments = {"endOffset": '{"payments":{"0":8}}', "latestOffset": '{"payments":{"0":6}}'}
    rate = {"endOffset": 4, "latestOffset": None}
    assert partition_lags({"sources": [orders, payments, rate]}) == {
        TopicPartition("orders", 0): 4,
        TopicPartition("orders", 1): 0,
        TopicPartition("orders", 2): 3,
        TopicPartition("payments", 0): 0,  # records were written after the source queried the end
    }
    assert partition_lags(None) == {}
