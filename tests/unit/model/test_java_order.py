"""The order of a java.util.HashMap with long keys, compared with the JDK and with a golden snapshot."""

from __future__ import annotations

from tailrace.model.java.java_order import FIRST_CAPACITY, grown_capacity, long_hash_order


def test_small_keys_are_ordered_by_their_bucket_of_sixteen() -> None:
    assert long_hash_order([17, 3, 16, 0, 1]) == [16, 0, 17, 1, 3]


def test_keys_of_one_bucket_are_in_insertion_order() -> None:
    assert long_hash_order([48, 16, 32]) == [48, 16, 32]


def test_the_upper_half_of_a_key_is_folded_into_its_hash() -> None:
    assert long_hash_order([2, 1 << 32]) == [1 << 32, 2], "2^32 hashes like 1"
    assert long_hash_order([2, 1 << 16]) == [1 << 16, 2], "2^16 hashes like 1, because the upper half is folded in"


def test_the_table_doubles_when_more_than_three_quarters_are_taken() -> None:
    assert grown_capacity(FIRST_CAPACITY, 12) == 16
    assert grown_capacity(FIRST_CAPACITY, 13) == 32
    assert grown_capacity(FIRST_CAPACITY, 25) == 64
    assert grown_capacity(64, 3) == 64, "a map never shrinks"


def test_a_larger_table_separates_keys_of_one_bucket() -> None:
    assert long_hash_order([16, 0], 16) == [16, 0]
    assert long_hash_order([16, 0], 32) == [0, 16]
