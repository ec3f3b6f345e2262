"""Limits of connections: their number, their rate, and how long they may be idle."""

from __future__ import annotations

import resource
from struct import pack

import pytest

from tailrace.server.connections.descriptors import Descriptors, descriptors_within
from tailrace.server.connections.endpoints import Endpoint
from tailrace.server.connections.held_sockets import HELD_MAX
from tailrace.server.settings import LimitSettings, ServerSettings
from tests.unit.server.harness import LOOPBACK, Client, Harness


def limited(**limits: object) -> ServerSettings:
    return ServerSettings(listeners=LOOPBACK, limits=LimitSettings(**limits))  # type: ignore[arg-type]


def test_a_thousand_connections_are_served() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < 2500:
        pytest.skip(f"a thousand connections need 2,500 descriptors; {hard} are allowed")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 2500), hard))
    with Harness() as harness:
        for _ in range(50):
            for _ in range(20):
                harness.knock()
            harness.until(lambda: harness.loop.statistics().connections == len(harness.clients))
        clients = harness.clients
        for number, client in enumerate(clients):
            client.send(b"E%d" % number, b"E!")
        harness.until(lambda: harness.loop.statistics().requests == 2000)
        for number, client in enumerate(clients):
            assert [client.receive(), client.receive()] == [b"%d" % number, b"!"]
        for client in clients:
            client.close()
        harness.until(lambda: harness.loop.statistics().connections == 0)
        assert len(harness.broker.gone) == 1000


def test_with_max_connections_open_the_next_client_waits() -> None:
    with Harness(settings=limited(connections_max=2)) as harness:
        first, _second = harness.client(), harness.client()
        third = harness.knock()
        third.send(b"Ethird")
        harness.turn(20)
        assert harness.loop.statistics().connections == 2
        assert harness.loop.statistics().paused_listeners == 1
        first.close()
        assert harness.receive(third, 1) == [b"third"]


def test_an_address_at_its_maximum_is_refused() -> None:
    with Harness(settings=limited(connections_per_ip_max=2)) as harness:
        clients = [harness.client() for _ in range(3)]
        harness.until(clients[2].is_closed)
        assert [harness.ask(client, b"Ex") for client in clients[:2]] == [b"x", b"x"]
        clients[0].close()
        harness.until(lambda: harness.loop.statistics().connections == 1)
        assert harness.ask(harness.client(), b"Ey") == b"y"
        assert harness.loop.statistics().refused == 1


def test_clients_above_the_connection_rate_wait() -> None:
    with Harness(settings=limited(creation_rate_max=1)) as harness:
        for _ in range(10):
            harness.client()
        late = harness.knock()
        late.send(b"Elate")
        harness.turn(10)
        assert harness.loop.statistics().connections == 10
        harness.timer_ms += 500
        harness.turn(5)
        assert harness.loop.statistics().connections == 10
        harness.timer_ms += 501
        assert harness.receive(late, 1) == [b"late"]


def test_a_connection_above_the_rate_of_its_address_is_held_and_then_closed() -> None:
    with Harness() as harness:
        first = harness.client()
        harness.broker.hold_off_ms = 500
        late = harness.knock()
        late.send(b"Elate")
        harness.until(lambda: harness.loop.statistics().refused == 1)
        harness.timer_ms += 499
        harness.turn(5)
        assert (late.is_closed(), harness.loop.statistics().connections, harness.broker.handled) == (False, 1, 0)
        harness.timer_ms += 1
        harness.until(late.is_closed)
        harness.broker.hold_off_ms = 0
        assert [harness.ask(one, b"Ex") for one in (first, harness.client())] == [b"x", b"x"]


def test_held_connections_take_a_bounded_number_of_descriptors() -> None:
    with Harness() as harness:
        harness.broker.hold_off_ms = 60_000
        clients = []
        for number in range(HELD_MAX + 3):
            clients.append(harness.knock())
            harness.until(lambda number=number: harness.loop.statistics().refused == number + 1)  # type: ignore[misc]
        assert [one.is_closed() for one in clients[:4]] == [True, True, True, False]


def test_limits_can_be_changed_while_the_server_runs() -> None:
    with Harness(settings=limited(connections_max=1)) as harness:
        harness.client()
        second = harness.knock()
        second.send(b"Ex")
        harness.turn(5)
        assert harness.loop.statistics().connections == 1
        harness.loop.change_limits(LimitSettings(connections_max=2))
        assert harness.receive(second, 1) == [b"x"]


def test_a_limit_of_one_listener_does_not_affect_another() -> None:
    listeners = (Endpoint("IN", "127.0.0.1", 0), Endpoint("OUT", "127.0.0.1", 0))
    settings = ServerSettings(listeners=listeners, limits=LimitSettings(listener_connections_max={"IN": 1}))
    with Harness(settings=settings) as harness:
        harness.client()
        inside = harness.knock()
        harness.turn(5)
        outside = Client(harness.listeners[1].endpoint.port)
        harness.clients.append(outside)
        assert harness.ask(outside, b"Ex") == b"x"
        assert harness.loop.statistics().connections == 2
        assert inside.replies_so_far() == []
        assert {context.listener for context in harness.broker.contexts.values()} == {"OUT"}


def test_an_idle_connection_is_closed() -> None:
    with Harness(settings=ServerSettings(listeners=LOOPBACK, idle_ms_max=10_000)) as harness:
        silent, busy = harness.client(), harness.client()
        for _ in range(4):
            harness.timer_ms += 2_500
            assert harness.ask(busy, b"Ex") == b"x"
            harness.turn()
        harness.timer_ms += 1_000
        harness.until(silent.is_closed)
        assert harness.ask(busy, b"Ex") == b"x"
        assert harness.loop.statistics().closed == {"idle": 1}


def test_a_connection_that_waits_for_its_reply_is_not_idle() -> None:
    with Harness(settings=ServerSettings(listeners=LOOPBACK, idle_ms_max=10_000)) as harness:
        client = harness.client()
        client.send(b"Px")
        harness.until(lambda: len(harness.broker.parked) == 1)
        harness.timer_ms += 60_000
        harness.turn(3)
        harness.broker.release()
        assert harness.receive(client, 1) == [b"x"]
        harness.timer_ms += 5_000
        harness.turn(3)
        assert not client.is_closed()


def test_a_client_that_does_not_read_its_replies_is_idle() -> None:
    with Harness(settings=ServerSettings(listeners=LOOPBACK, idle_ms_max=10_000)) as harness:
        client = harness.client(receive_buffer_bytes=4096)
        client.send(b"B" + (8_000_000).to_bytes(4, "big"))
        harness.until(lambda: harness.loop.statistics().writing == 1)
        harness.turn(20)
        harness.timer_ms += 11_000
        harness.until(lambda: harness.loop.statistics().connections == 0)
        assert harness.loop.statistics().closed == {"idle": 1}


def test_throttled_time_does_not_count_as_idle() -> None:
    with Harness(settings=ServerSettings(listeners=LOOPBACK, idle_ms_max=10_000)) as harness:
        client = harness.client()
        assert harness.ask(client, b"T" + pack(">i", 30_000)) == b""
        for _ in range(39):
            harness.timer_ms += 1_000
            harness.turn(2)
        assert harness.ask(client, b"Ex") == b"x"
        for _ in range(12):
            harness.timer_ms += 1_000
            harness.turn(2)
        harness.until(client.is_closed)


def test_without_an_idle_limit_no_connection_is_closed() -> None:
    with Harness(settings=ServerSettings(listeners=LOOPBACK, idle_ms_max=-1)) as harness:
        client = harness.client()
        harness.timer_ms += 10**9
        harness.turn(3)
        assert harness.ask(client, b"Ex") == b"x"


def test_descriptors_bound_connections_below_max_connections() -> None:
    settings = ServerSettings(listeners=LOOPBACK, descriptors=Descriptors(connections_max=2))
    with Harness(settings=settings) as harness:
        first, _second = harness.client(), harness.client()
        third = harness.knock()
        third.send(b"Ethird")
        harness.turn(20)
        assert harness.loop.statistics().connections == 2
        harness.loop.change_limits(LimitSettings(connections_max=10))
        harness.turn(20)
        assert harness.loop.statistics().connections == 2
        first.close()
        assert harness.receive(third, 1) == [b"third"]


def test_a_socket_in_the_reserve_for_files_is_closed_and_the_listener_waits_a_second() -> None:
    settings = ServerSettings(listeners=LOOPBACK, descriptors=Descriptors(reserve_start=0))
    with Harness(settings=settings) as harness:
        refused, waiting = harness.knock(), harness.knock()
        harness.until(refused.is_closed)
        harness.turn(20)
        assert harness.loop.statistics().refused == 1
        assert harness.loop.statistics().paused_listeners == 1
        assert not waiting.is_closed()
        harness.timer_ms += 1_000
        harness.until(waiting.is_closed)


@pytest.mark.parametrize(
    ("limit", "in_use", "expected"),
    [
        (160, 20, Descriptors(160 - 64 - 20, 96)),
        (1_024, 20, Descriptors(683 - 20, 683)),
        (65_536, 100, Descriptors(43_691 - 100, 43_691)),
        (40, 30, Descriptors(1, 20)),
    ],
)
def test_a_third_of_the_descriptors_is_kept_for_files(limit: int, in_use: int, expected: Descriptors) -> None:
    assert descriptors_within(limit, in_use) == expected


def test_a_request_that_arrives_byte_by_byte_is_closed_after_the_idle_time() -> None:
    with Harness(settings=ServerSettings(listeners=LOOPBACK, idle_ms_max=1_000)) as harness:
        slow, steady = harness.client(), harness.client()
        slow.socket.sendall(pack(">i", 100))
        harness.turn(5)
        for _ in range(14):
            harness.timer_ms += 100
            assert harness.ask(steady, b"Ex") == b"x"
            if not slow.is_closed():
                slow.socket.sendall(b"E")
            harness.turn(5)
        assert slow.is_closed()
        assert harness.loop.statistics().closed["idle"] == 1
        assert harness.ask(steady, b"Ey") == b"y"


def test_a_large_request_that_makes_progress_is_not_closed() -> None:
    with Harness(settings=ServerSettings(listeners=LOOPBACK, idle_ms_max=1_000)) as harness:
        client = harness.client()
        body = b"E" + b"x" * 2_000_000
        client.socket.sendall(pack(">i", len(body)))
        for start in range(0, len(body), 100_000):
            client.socket.sendall(body[start : start + 100_000])
            harness.timer_ms += 400
            harness.turn(5)
        assert harness.receive(client, 1) == [body[1:]]
