"""Column functions for values with the frame of a schema registry, inside Spark."""

from __future__ import annotations

import io
import json
import struct
from typing import Any

import pytest


def frame(schema_id: int, payload: bytes) -> bytes:
    return b"\0" + struct.pack(">i", schema_id) + payload


def test_confluent_frames_are_decoded_and_encoded(spark: Any) -> None:
    from tailrace.spark.functions import (
        confluent_payload,
        confluent_schema_id,
        from_confluent_avro,
        from_confluent_json,
        to_confluent_frame,
    )
    from tailrace.spark.functions.registry_frame import confluent_protobuf_payload

    fastavro = pytest.importorskip("fastavro")
    schema = {"type": "record", "name": "R", "fields": [{"name": "n", "type": "long"}]}
    avro = io.BytesIO()
    fastavro.schemaless_writer(avro, fastavro.parse_schema(schema), {"n": 5})
    rows = [
        (0, frame(100_000, b'{"n": 7}')),
        (1, b"\x01abcdefgh"),
        (2, b"\0ab"),
        (3, None),
        (4, frame(2**31 - 1, b"\x00payload")),
        (5, frame(3, b"\x04\x02\x7epayload")),  # message numbers 1 and 63
        (6, frame(3, b"\x02\x80\x01payload")),  # message number 64 needs two bytes
        (7, frame(9, avro.getvalue())),
    ]
    frame_ = spark.createDataFrame(rows, "row int, value binary")
    found = {
        row.row: row
        for row in frame_.select(
            "row",
            confluent_schema_id("value").alias("id"),
            confluent_payload("value").alias("payload"),
            confluent_protobuf_payload("value").alias("message"),
            from_confluent_json("value", "n int").alias("json"),
            to_confluent_frame(confluent_payload("value"), 258).alias("framed"),
        ).collect()
    }
    assert [found[row].id for row in range(6)] == [100_000, None, None, None, 2**31 - 1, 3]
    assert bytes(found[0].payload) == b'{"n": 7}'
    assert found[1].payload is None
    assert found[0].json.n == 7
    assert bytes(found[4].message) == bytes(found[5].message) == b"payload"
    assert found[6].message is None
    assert bytes(found[0].framed) == frame(258, b'{"n": 7}')
    text = json.dumps(schema)
    decoded = frame_.where("row in (3, 7)").select("row", from_confluent_avro("value", text, {9: text}).alias("avro"))
    assert sorted((row.row, row.avro and row.avro.n) for row in decoded.collect()) == [(3, None), (7, 5)]
