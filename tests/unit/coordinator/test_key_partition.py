"""The partition of a key, computed with Java's String.hashCode."""

from __future__ import annotations

import pytest

from tailrace.coordinator.key_partition import java_hash, partition_of


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", 0),
        ("a", 97),
        ("group", 98629247),
        ("console-consumer-12345", 158455506),
        ("ä€𐍈", 16601488),
        ("polygenelubricants", -(2**31)),
    ],
)
def test_the_hash_is_javas(text: str, code: int) -> None:
    assert java_hash(text) == code


def test_the_smallest_integer_maps_to_partition_0() -> None:
    assert partition_of("polygenelubricants", 50) == 0


def test_a_negative_hash_counts_by_its_absolute_value() -> None:
    text = next(text for text in map("group-{}".format, range(1000)) if java_hash(text) < 0)
    assert partition_of(text, 50) == -java_hash(text) % 50
