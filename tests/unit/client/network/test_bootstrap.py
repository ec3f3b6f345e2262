from __future__ import annotations

import pytest

from tailrace.client.errors import InvalidAddress, UnsupportedSecurity
from tailrace.client.network.address import Address
from tailrace.client.network.bootstrap import parse_bootstrap


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("localhost:9092", [("localhost", 9092)]),
        ("kafka-1:9092, kafka-2:9093,", [("kafka-1", 9092), ("kafka-2", 9093)]),
        ("a:1,b:2,a:1", [("a", 1), ("b", 2)]),
        ("[::1]:9092", [("::1", 9092)]),
        ("PLAINTEXT://127.0.0.1:9092", [("127.0.0.1", 9092)]),
        ("localhost", [("localhost", 9092)]),
    ],
)
def test_a_bootstrap_list_is_parsed_into_addresses(text: str, expected: list[tuple[str, int]]) -> None:
    assert parse_bootstrap(text) == tuple(Address(*one) for one in expected)


@pytest.mark.parametrize("text", ["", ",", "a:b", "a:0", "a:65536", "a:9999999", "::1:9092", "a b:1", "http://x/y:1"])
def test_a_malformed_bootstrap_address_is_refused(text: str) -> None:
    with pytest.raises(InvalidAddress):
        parse_bootstrap(text)


def test_a_bootstrap_address_with_a_secure_protocol_is_refused() -> None:
    with pytest.raises(UnsupportedSecurity, match="SASL_SSL"):
        parse_bootstrap("SASL_SSL://kafka:9093")


def test_an_address_is_printed_as_it_is_parsed() -> None:
    for text in ("kafka:9092", "[::1]:9092"):
        assert [str(address) for address in parse_bootstrap(text)] == [text]
