"""Listeners as Kafka writes them."""

from __future__ import annotations

import pytest

from tailrace.model.topic_config import InvalidConfig
from tailrace.server.connections.endpoints import (
    Endpoint,
    advertise,
    check_ports,
    parse_endpoints,
    parse_protocol_map,
    protocols_of,
)


@pytest.mark.parametrize(
    ("text", "endpoints"),
    [
        ("PLAINTEXT://:9092", [("PLAINTEXT", "", 9092)]),
        ("plaintext://localhost:0", [("PLAINTEXT", "localhost", 0)]),
        ("A://10.0.0.1:1, B://[::1]:2", [("A", "10.0.0.1", 1), ("B", "::1", 2)]),
        ("A://::1:2", [("A", "::1", 2)]),
        ("A://[fe80::1%eth0]:2", [("A", "fe80::1%eth0", 2)]),
        (" ,A://h:1,", [("A", "h", 1)]),
        ("", []),
    ],
)
def test_listeners_are_read_as_kafka_reads_them(text: str, endpoints: list[tuple[str, str, int]]) -> None:
    assert list(parse_endpoints("listeners", text)) == endpoints


@pytest.mark.parametrize(
    "text", ["9092", "A://h", "A://h:", "A://h:x", "A://h:-1", "A://h:65536", "://h:1", "A://h:1,a://h:2", "A://h h:1"]
)
def test_an_invalid_listener_is_named_in_the_error(text: str) -> None:
    with pytest.raises(InvalidConfig, match="listeners: "):
        parse_endpoints("listeners", text)


@pytest.mark.parametrize("text", ["A://:0,B://:0", "A://127.0.0.1:1,B://[::1]:1", "A://h:1,B://h:2"])
def test_ports_may_be_free_different_or_on_two_ip_stacks(text: str) -> None:
    check_ports("listeners", parse_endpoints("listeners", text))


@pytest.mark.parametrize(
    "text", ["A://h:1,B://g:1", "A://127.0.0.1:1,B://127.0.0.2:1", "A://127.0.0.1:1,B://[::1]:1,C://:1"]
)
def test_ports_may_not_be_shared_otherwise(text: str) -> None:
    with pytest.raises(InvalidConfig, match="share port 1"):
        check_ports("listeners", parse_endpoints("listeners", text))


def test_a_listener_has_the_protocol_of_the_map_or_of_its_name() -> None:
    listeners = [Endpoint("PLAINTEXT", "", 1), Endpoint("INSIDE", "", 2), Endpoint("SSL", "", 3)]
    found = protocols_of(listeners, {"INSIDE": "SASL_SSL"})
    assert found == {"PLAINTEXT": "PLAINTEXT", "INSIDE": "SASL_SSL", "SSL": "SSL"}
    with pytest.raises(InvalidConfig, match="no security protocol for listener OUTSIDE"):
        protocols_of([Endpoint("OUTSIDE", "", 1)], {})


def test_the_protocol_map() -> None:
    assert parse_protocol_map(" inside:plaintext, OUT:SSL") == {"INSIDE": "PLAINTEXT", "OUT": "SSL"}
    for text in ("INSIDE", "INSIDE:TLS"):
        with pytest.raises(InvalidConfig, match=r"listener\.security\.protocol\.map"):
            parse_protocol_map(text)


def test_the_listeners_are_advertised_with_real_hosts_and_ports() -> None:
    bound = [Endpoint("A", "", 40_001), Endpoint("B", "0.0.0.0", 40_002), Endpoint("C", "10.0.0.1", 40_003)]
    assert advertise(bound, [], "here") == (("A", "here", 40_001), ("B", "here", 40_002), ("C", "10.0.0.1", 40_003))


def test_advertised_listeners_are_taken_from_the_settings() -> None:
    bound = [Endpoint("A", "", 40_001), Endpoint("B", "", 40_002)]
    wanted = [Endpoint("A", "outside.example", 0), Endpoint("B", "", 9)]
    assert advertise(bound, wanted, "here") == (("A", "outside.example", 40_001), ("B", "here", 9))
    with pytest.raises(InvalidConfig, match="clients cannot connect to"):
        advertise(bound, [Endpoint("A", "0.0.0.0", 1)], "here")
    with pytest.raises(InvalidConfig, match="not one of the listeners"):
        advertise(bound, [Endpoint("D", "h", 1)], "here")


def test_an_endpoint_is_written_as_it_is_read() -> None:
    for text in ("A://h:1", "B://[::1]:2"):
        assert str(parse_endpoints("listeners", text)[0]) == text
