"""A server starts, runs in this thread or another, drains and stops; as a process it handles signals."""

from __future__ import annotations

import gc
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from struct import pack
from typing import Any

import pytest

from tailrace.model.errors import FatalError
from tailrace.server.broker_interface import ServerFunctions
from tailrace.server.connections.endpoints import Endpoint
from tailrace.server.server import Server, ServerStopped
from tailrace.server.settings import LimitSettings, ServerSettings
from tests.unit.server.fake_broker import FakeBroker
from tests.unit.server.harness import LOOPBACK, PATIENCE_S, Client, Harness

SETTINGS = ServerSettings(listeners=LOOPBACK)
ROOT = Path(__file__).parents[2]


def poll_until(condition: Callable[[], bool]) -> None:
    """Check a condition every few milliseconds until it holds, for work of another thread or process."""
    for _ in range(PATIENCE_S * 200):
        if condition():
            return
        threading.Event().wait(0.005)
    pytest.fail("the condition was not met in time")


# In a thread


def test_a_server_in_a_thread_responds_and_stops() -> None:
    broker = FakeBroker()
    with Server(lambda server_functions: broker, SETTINGS) as server:
        client = Client(server.port())
        assert client.ask(b"Ehello") == b"hello"
        assert server.statistics().requests == 1
    assert broker.closed_ms is not None
    with pytest.raises(EOFError):
        client.receive()
    with pytest.raises(ConnectionRefusedError):
        Client(server.port())
    client.close()


def test_the_builder_knows_the_port_before_the_server_listens() -> None:
    seen: list[ServerFunctions] = []

    def build(server_functions: ServerFunctions) -> FakeBroker:
        seen.append(server_functions)
        port = server_functions.endpoints[0].port
        assert port > 0
        with pytest.raises(ConnectionRefusedError):  # bound, but not listening before there is a broker
            Client(port)
        return FakeBroker()

    settings = ServerSettings(
        listeners=(Endpoint("IN", "127.0.0.1", 0), Endpoint("OUT", "", 0)),
        advertised=(Endpoint("OUT", "outside.example", 0),),
    )
    with Server(build, settings) as server:
        assert seen == [server]
        assert [endpoint.name for endpoint in server.endpoints] == ["IN", "OUT"]
        assert server.advertised == (("OUT", "outside.example", server.port("OUT")),)
        assert server.port() == server.port("IN") != server.port("OUT")
        with pytest.raises(KeyError):
            server.port("ELSEWHERE")


@pytest.mark.skipif(not socket.has_ipv6, reason="this machine has no IPv6")
@pytest.mark.parametrize(("host", "reached_by"), [("::1", ["::1"]), ("", ["127.0.0.1", "::1"]), ("localhost", [])])
def test_a_server_listens_on_ipv4_and_ipv6(host: str, reached_by: list[str]) -> None:
    broker = FakeBroker()
    try:
        server = Server(lambda server_functions: broker, ServerSettings(listeners=(Endpoint("PLAINTEXT", host, 0),)))
        server.start()
    except OSError as error:
        pytest.skip(f"IPv6 is switched off here: {error}")
    with_clients = [Client(server.port(), where) for where in reached_by or ["127.0.0.1"]]
    for client in with_clients:
        assert client.ask(b"Ex") == b"x"
        client.close()
    server.stop()
    assert [context.client_host for context in broker.contexts.values()] == (reached_by or ["127.0.0.1"])


def test_a_port_in_use_raises_in_the_starting_thread() -> None:
    built = []
    with Server(lambda server_functions: FakeBroker(), SETTINGS) as server:
        taken = ServerSettings(listeners=(Endpoint("PLAINTEXT", "127.0.0.1", server.port()),))
        second = Server(lambda server_functions: built.append(1) or FakeBroker(), taken)  # type: ignore[func-returns-value]
        with pytest.raises(OSError, match=f"cannot listen on PLAINTEXT://127.0.0.1:{server.port()}"):
            second.start()
        second.stop()
    assert built == []


def test_a_broker_that_cannot_be_built_raises_in_the_starting_thread() -> None:
    def build(server_functions: ServerFunctions) -> FakeBroker:
        raise RuntimeError("no directory")

    server = Server(build, SETTINGS)
    with pytest.raises(RuntimeError, match="no directory"):
        server.start()
    with pytest.raises(ConnectionRefusedError):
        Client(server.port())


def test_stopping_twice_or_before_the_start_has_no_effect() -> None:
    broker = FakeBroker()
    server = Server(lambda server_functions: broker, SETTINGS)
    server.stop()
    server.start()
    server.stop()
    closed_ms = broker.closed_ms
    server.stop()
    assert broker.closed_ms == closed_ms


def test_a_server_that_was_opened_but_never_ran_closes_its_broker() -> None:
    broker = FakeBroker()
    server = Server(lambda server_functions: broker, SETTINGS)
    server.open()
    server.stop()
    assert broker.closed_ms is not None


def test_a_killed_server_does_not_close_its_broker() -> None:
    broker = FakeBroker()
    server = Server(lambda server_functions: broker, SETTINGS)
    server.start()
    client = Client(server.port())
    client.send(b"Pwaiting")
    poll_until(lambda: len(broker.parked) == 1)
    server.kill()
    assert broker.closed_ms is None
    with pytest.raises((EOFError, ConnectionResetError)):
        client.receive()
    client.close()


def test_a_port_can_be_reused_at_once() -> None:
    with Server(lambda server_functions: FakeBroker(), SETTINGS) as server:
        client = Client(server.port())
        client.ask(b"Ex")
    again = ServerSettings(listeners=(Endpoint("PLAINTEXT", "127.0.0.1", server.port()),))
    with Server(lambda server_functions: FakeBroker(), again) as server:
        fresh = Client(server.port())
        assert fresh.ask(b"Ey") == b"y"
        fresh.close()
    client.close()


def test_functions_run_on_the_loop() -> None:
    broker = FakeBroker()
    with Server(lambda server_functions: broker, SETTINGS) as server:
        assert server.call(threading.get_ident) != threading.get_ident()
        assert server.call(lambda: server.call(lambda: 5)) == 5
        with pytest.raises(ZeroDivisionError):
            server.call(lambda: 1 // 0)
        client = Client(server.port())
        client.send(b"Pwaiting")
        poll_until(lambda: server.call(lambda: len(broker.parked)) == 1)
        server.call(broker.release)
        assert client.receive() == b"waiting"
        client.close()
    with pytest.raises(ServerStopped):
        server.call(lambda: 5)


def test_late_calls_are_refused_and_no_caller_waits_forever() -> None:
    for _ in range(20):
        server = Server(lambda server_functions: FakeBroker(), SETTINGS)
        server.start()
        outcomes: list[object] = []

        def call(server: Server = server, outcomes: list[object] = outcomes) -> None:
            try:
                outcomes.append(server.call(lambda: 1))
            except ServerStopped:
                outcomes.append(None)

        threads = [threading.Thread(target=call) for _ in range(5)]
        for thread in threads:
            thread.start()
        server.stop()
        for thread in threads:
            thread.join(PATIENCE_S)
        assert len(outcomes) == 5


def test_connections_can_be_closed_and_limits_changed() -> None:
    with Server(lambda server_functions: FakeBroker(), SETTINGS) as server:
        first, second = Client(server.port()), Client(server.port())
        first.ask(b"Ex")
        second.ask(b"Ex")
        port = first.socket.getsockname()[1]
        assert server.close_connections(lambda context: context.client_port == port) == 1
        with pytest.raises(EOFError):
            first.receive()
        assert second.ask(b"Ey") == b"y"
        server.change_limits(LimitSettings(connections_per_ip_max=1))
        third = Client(server.port())
        with pytest.raises((EOFError, ConnectionResetError)):
            third.ask(b"Ex")
        for client in (first, second, third):
            client.close()


def test_an_error_that_ended_the_loop_is_raised_by_stop(caplog: pytest.LogCaptureFixture) -> None:
    broker = FakeBroker()
    server = Server(lambda server_functions: broker, SETTINGS)
    server.start()
    client = Client(server.port())
    client.send(b"A")
    with pytest.raises((EOFError, ConnectionResetError)):
        client.receive()
    with pytest.raises(FatalError, match="planned failure"):
        server.stop()
    assert broker.closed_ms is None, "a failed broker writes no clean-shutdown marker"
    assert "the server has failed" in caplog.text
    client.close()


# Draining


def test_a_drain_sends_pending_replies_and_accepts_no_requests() -> None:
    with Harness() as harness:
        waiting, idle, other = harness.client(), harness.client(), harness.client()
        waiting.send(b"Pdue", b"Enot taken")
        other.send(b"W" + pack(">i", 100) + b"soon")
        harness.until(lambda: harness.broker.handled == 2)
        harness.loop.drain()
        assert idle.is_closed()
        with pytest.raises(ConnectionRefusedError):
            harness.knock()
        harness.clock_ms += 100
        assert harness.receive(other, 1) == [b"soon"]
        harness.until(other.is_closed)
        harness.broker.release()
        assert harness.receive(waiting, 1) == [b"due"]
        harness.until(waiting.is_closed)
        assert harness.broker.handled == 2
        assert harness.loop.statistics().connections == 0
        harness.loop.run()  # ends at once


def test_a_drain_waits_for_a_slow_reader() -> None:
    with Harness() as harness:
        client = harness.client(receive_buffer_bytes=65_536)
        client.send(b"B" + pack(">i", 5_000_000))
        harness.until(lambda: harness.loop.statistics().writing == 1)
        harness.loop.drain()
        assert [len(reply) for reply in harness.receive(client, 1)] == [5_000_000]
        harness.until(client.is_closed)


def test_a_drain_ends_at_its_time_limit() -> None:
    with Harness() as harness:
        client = harness.client()
        client.send(b"Pnever")
        harness.until(lambda: len(harness.broker.parked) == 1)
        harness.loop.drain()
        harness.timer_ms += SETTINGS.drain_ms
        harness.wakeup.set()
        harness.loop.run()
        assert harness.loop.statistics().connections == 1


def test_a_drain_without_connections_ends_at_once() -> None:
    with Harness() as harness:
        harness.loop.drain()
        harness.loop.run()


# Chores


class Chore:
    def __init__(self, work: Callable[[], Any]) -> None:
        self.run = work
        self.applied: list[tuple[Any, int]] = []
        self.errors: list[BaseException] = []

    def apply(self, result: Any, now_ms: int) -> None:
        self.applied.append((result, threading.get_ident()))

    def failed(self, error: BaseException, now_ms: int) -> None:
        self.errors.append(error)


def test_a_chore_runs_outside_the_loop_and_its_result_is_applied_on_the_loop() -> None:
    submit: list[Callable[[Any], None]] = []

    def build(server_functions: ServerFunctions) -> FakeBroker:
        submit.append(server_functions.submit)
        return FakeBroker()

    with Server(build, SETTINGS) as server:
        go_on = threading.Event()
        chore = Chore(lambda: (go_on.wait(PATIENCE_S), threading.get_ident()))
        server.call(lambda: submit[0](chore))
        client = Client(server.port())
        assert client.ask(b"Emeanwhile") == b"meanwhile"
        assert server.statistics().chores_unfinished == 1
        go_on.set()
        poll_until(lambda: server.statistics().chores_completed == 1)
        loop_thread = server.call(threading.get_ident)
        ((came, ran_on), applied_on), *_ = chore.applied
        assert came
        assert applied_on == loop_thread != ran_on
        client.close()


def test_chores_are_finished_and_applied_before_the_broker_is_closed() -> None:
    order: list[str] = []

    class Orderly(FakeBroker):
        def close(self, now_ms: int) -> None:
            order.append("closed")

    class Noted(Chore):
        def apply(self, result: Any, now_ms: int) -> None:
            order.append("applied")

    server = Server(lambda server_functions: Orderly(), SETTINGS)
    server.start()
    go_on = threading.Event()
    server.call(lambda: server.submit(Noted(lambda: go_on.wait(PATIENCE_S))))
    server.request_stop()
    go_on.set()
    server.stop()
    assert order == ["applied", "closed"]


def test_a_failed_chore_is_reported_on_the_loop() -> None:
    with Server(lambda server_functions: FakeBroker(), SETTINGS) as server:
        chore = Chore(lambda: 1 // 0)
        server.call(lambda: server.submit(chore))
        poll_until(lambda: server.statistics().chores_failed == 1)
        assert isinstance(chore.errors[0], ZeroDivisionError)


# As a process

PROGRAM = """
import sys
from tailrace.server.run_broker import run_broker
from tailrace.server.settings import ServerSettings
from tests.unit.server.fake_broker import FakeBroker
from tests.unit.server.harness import LOOPBACK

class Broker(FakeBroker):
    def close(self, now_ms):
        print("closed", flush=True)

run_broker(lambda server_functions: Broker(), ServerSettings(listeners=LOOPBACK, drain_ms=int(sys.argv[1])),
           lambda server: print(server.port(), flush=True))
print("ended", flush=True)
"""


@pytest.fixture
def process() -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-c", PROGRAM, "60000"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        yield process
        process.kill()


def port_of(process: subprocess.Popen[str]) -> int:
    assert process.stdout is not None
    return int(process.stdout.readline())


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_drains_and_ends_the_process(process: subprocess.Popen[str], number: signal.Signals) -> None:
    port = port_of(process)
    client, other = Client(port), Client(port)
    client.send(b"Pdue")
    assert other.ask(b"Ex") == b"x"
    other.send(b"W" + pack(">i", 300) + b"soon")
    poll_until(lambda: is_asleep(process.pid))
    os.kill(process.pid, number)
    assert other.receive() == b"soon"
    with pytest.raises(EOFError):
        other.receive()
    assert process.poll() is None, "somebody still waits"
    client.reset()
    assert process.communicate(timeout=PATIENCE_S)[0].split() == ["closed", "ended"]
    assert process.returncode == 0
    other.close()


def test_a_second_signal_ends_the_drain(process: subprocess.Popen[str]) -> None:
    port = port_of(process)
    client, other = Client(port), Client(port)
    client.send(b"Pnever")
    assert other.ask(b"Ex") == b"x"
    other.close()
    os.kill(process.pid, signal.SIGTERM)
    poll_until(lambda: is_refused(port))
    assert process.poll() is None
    os.kill(process.pid, signal.SIGTERM)
    assert process.communicate(timeout=PATIENCE_S)[0].split() == ["closed", "ended"]
    client.close()


def is_refused(port: int) -> bool:
    try:
        Client(port).close()
    except ConnectionRefusedError:
        return True
    return False


def is_asleep(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "S"


def test_an_idle_server_uses_no_cpu() -> None:
    with Server(lambda server_functions: FakeBroker(), SETTINGS) as server:
        client = Client(server.port())
        client.ask(b"Ex")
        before = server.statistics().passes
        threading.Event().wait(0.05)
        assert server.statistics().passes - before <= 3
        client.close()


def test_requests_leave_no_cycles_for_the_garbage_collector() -> None:
    """The memory of a request is freed when it is answered."""
    with Harness() as harness:
        client = harness.client()
        harness.ask(client, b"Ex")
        gc.collect()
        gc.disable()
        try:
            for _ in range(50):
                client.send(*[b"Ex"] * 20)
                harness.receive(client, 20)
            assert gc.collect() < 20
        finally:
            gc.enable()
