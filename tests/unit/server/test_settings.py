"""The network's part of a server.properties."""

from __future__ import annotations

import pytest

from tailrace.model.topic_config import INT_MAX, InvalidConfig
from tailrace.server.connections.endpoints import Endpoint
from tailrace.server.settings import LimitSettings, ServerSettings, SliceStrategy


def test_without_properties_the_defaults_are_used() -> None:
    assert ServerSettings.parse({}) == ServerSettings()
    assert ServerSettings.parse({"num.partitions": "3"}) == ServerSettings()


def test_every_setting_is_read() -> None:
    settings = ServerSettings.parse(
        {
            "listeners": "IN://127.0.0.1:0,PLAINTEXT://:9092",
            "advertised.listeners": "PLAINTEXT://broker:9092",
            "listener.security.protocol.map": "IN:PLAINTEXT,PLAINTEXT:PLAINTEXT",
            "socket.request.max.bytes": "1000",
            "socket.send.buffer.bytes": "-1",
            "socket.receive.buffer.bytes": "4096",
            "socket.listen.backlog.size": "7",
            "connections.max.idle.ms": "-1",
            "max.connections": "10",
            "max.connections.per.ip": "5",
            "max.connections.per.ip.overrides": "127.0.0.1:200, [::1]:3",
            "max.connection.creation.rate": "20",
            "listener.name.in.max.connections": "2",
            "listener.name.in.max.connection.creation.rate": "1",
            "queued.max.request.bytes": "-1",
            "tailrace.slices": "pread",
            "tailrace.drain.ms": "0",
            "tailrace.chore.threads": "1",
        }
    )
    assert settings == ServerSettings(
        listeners=(Endpoint("IN", "127.0.0.1", 0), Endpoint("PLAINTEXT", "", 9092)),
        advertised=(Endpoint("PLAINTEXT", "broker", 9092),),
        limits=LimitSettings(10, 5, {"127.0.0.1": 200, "::1": 3}, 20, {"IN": 2}, {"IN": 1}),
        request_bytes_max=1000,
        queued_bytes_max=10_000,
        send_buffer_bytes=-1,
        receive_buffer_bytes=4096,
        backlog=7,
        idle_ms_max=-1,
        slices=SliceStrategy.PREAD,
        drain_ms=0,
        chore_threads=1,
    )


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("listeners", ""),
        ("listeners", "SSL://:1"),
        ("socket.request.max.bytes", "0"),
        ("socket.request.max.bytes", "many"),
        ("socket.request.max.bytes", "1_000"),  # a number in Python, but not in Java
        ("socket.send.buffer.bytes", "-2"),
        ("socket.listen.backlog.size", "0"),
        ("max.connections", "-1"),
        ("max.connections.per.ip", str(INT_MAX + 1)),
        ("max.connections.per.ip.overrides", "127.0.0.1"),
        ("listener.name.in.max.connections", "0"),
        ("tailrace.slices", "mmap"),
    ],
)
def test_an_invalid_value_is_refused_with_the_name_of_its_config(key: str, value: str) -> None:
    with pytest.raises(InvalidConfig, match=key if "SSL" not in value else "SSL"):
        ServerSettings.parse({key: value})
