"""The reader of OTLP metrics, with valid and with hostile messages."""

from __future__ import annotations

import random
import struct
import time

import pytest

from tailrace.metrics.otlp import (
    ATTRIBUTES_MAX,
    FIELDS_MAX,
    NAME_SIZE_MAX,
    TEXT_LENGTH_MAX,
    MalformedMetricsData,
    Point,
    Points,
    read_points,
)
from tests.support.otlp import attribute, flag, gauge, message, metrics_data, point, total, varint

SAMPLE = metrics_data(
    gauge("lag", point(3, {"topic": "t"}), point(0.5, {"topic": "u"})),
    total("sent", point(7)),
    total("added", point(2.0), is_delta=True),
    resource={"group_id": "g"},
)


def read(*metrics: bytes) -> Points:
    return read_points(metrics_data(*metrics), 100)


def test_gauges_and_sums_are_read_with_the_attributes_of_their_resource() -> None:
    assert read_points(SAMPLE, 100) == Points(
        [
            Point("lag", {"group_id": "g", "topic": "t"}, 3, False, False),
            Point("lag", {"group_id": "g", "topic": "u"}, 0.5, False, False),
            Point("sent", {"group_id": "g"}, 7, True, False),
            Point("added", {"group_id": "g"}, 2.0, True, True),
        ],
        0,
    )


def test_an_empty_message_has_no_points() -> None:
    assert read_points(b"", 100) == Points([], 0)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (message(1, b"x"), "x"),
        (flag(2, 1), "true"),
        (flag(2, 0), "false"),
        (flag(3, 12), "12"),
        (flag(3, 2**64 - 1), "-1"),
        (b"\x21" + struct.pack("<d", 1.5), "1.5"),
        (message(5, b"a list"), ""),
        (b"", ""),
    ],
)
def test_attributes_of_every_type_become_text(value: bytes, text: str) -> None:
    (found,) = read(gauge("g", message(1, b"\x31" + bytes(8) + attribute(7, "key", value)))).points
    assert found.attributes == {"key": text}


def test_points_without_a_finite_value_are_left_out() -> None:
    no_value = message(1, b"\x31" + bytes(8) + flag(8, 1))
    assert read(gauge("g", point(float("nan")), point(float("inf")), message(1, b""), no_value)).points == []


def test_histograms_and_unnamed_metrics_are_counted_as_skipped() -> None:
    histogram = message(2, message(1, b"h") + message(9, b""))
    long_name = gauge("n" * (NAME_SIZE_MAX + 1), point(1))
    assert read(histogram, long_name, gauge("", point(1)), gauge("n" * NAME_SIZE_MAX, point(1))) == Points(
        [Point("n" * NAME_SIZE_MAX, {}, 1, False, False)], 3
    )


def test_points_above_the_limit_are_counted_as_skipped() -> None:
    data = metrics_data(gauge("g", *[point(one) for one in range(10)]), gauge("h", point(1)))
    assert [one.value for one in read_points(data, 4).points] == [0, 1, 2, 3]
    assert read_points(data, 4).skipped == 7


def test_attributes_are_truncated_and_limited_in_number() -> None:
    (found,) = read(gauge("g", point(1, {"k" * 1000: "v" * 1000}))).points
    assert found.attributes == {"k" * TEXT_LENGTH_MAX: "v" * TEXT_LENGTH_MAX}
    (found,) = read(gauge("g", point(1, {str(one): "" for one in range(50)}))).points
    assert len(found.attributes) == ATTRIBUTES_MAX


@pytest.mark.parametrize(
    "data",
    [
        b"\x0a",  # without a size
        b"\x0a\x05abc",  # a size beyond the end of the message
        b"\x0a" + varint(2**63) + b"x",
        b"\xff" * 20,  # a varint without an end
        b"\x0b",  # wire type 3, the start of a group
        b"\x09abc",  # eight bytes expected
        b"\x0d\x00",  # four bytes expected
        metrics_data(message(2, message(1, b"\xff\xfe") + message(5, point(1)))),  # a name that is not UTF-8
        metrics_data(gauge("g", message(1, attribute(7, "k", message(1, b"\xff"))))),
        metrics_data(gauge("g", message(1, b"\x21\x00"))),
    ],
)
def test_malformed_messages_are_refused(data: bytes) -> None:
    with pytest.raises(MalformedMetricsData):
        read_points(data, 100)


def test_a_message_with_too_many_fields_is_refused_early() -> None:
    started = time.process_time()
    with pytest.raises(MalformedMetricsData, match="more than 25000 fields"):
        read_points(flag(9, 1) * (FIELDS_MAX + 1), 100)
    with pytest.raises(MalformedMetricsData, match="more than 25000 fields"):
        read_points(metrics_data(gauge("g", *[point(1, {"k": "v"})] * FIELDS_MAX)), FIELDS_MAX)
    assert time.process_time() - started < 5


def test_deeply_nested_messages_do_not_recurse() -> None:
    value = b""
    for _ in range(5_000):
        value = message(5, message(1, value))  # a list in a list
    (found,) = read(gauge("g", message(1, b"\x31" + bytes(8) + attribute(7, "key", value)))).points
    assert found.attributes == {"key": ""}


def test_damaged_messages_are_read_or_refused() -> None:
    dice = random.Random(714)
    refused = 0
    for _ in range(3_000):
        data = bytearray(SAMPLE)
        for _ in range(dice.randrange(1, 4)):
            data[dice.randrange(len(data))] = dice.randrange(256)
        try:
            assert len(read_points(bytes(data[: dice.randrange(len(data) + 1)]), 100).points) <= 100
        except MalformedMetricsData:
            refused += 1
    assert refused > 1_000
