"""The console over HTTP: its answers are those of commands, and it refuses what a visitor may not do."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import ssl
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import tailrace
from tailrace.cli.console.login_attempts import FAILURES_MAX
from tests.support.command import tailrace as command
from tests.support.console import Console, ConsoleClient, printed, write_client_file
from tests.support.secured import TLS, jaas
from tests.support.tailrace_process import TailraceProcess

HOSTILE = '<img src=x onerror="alert(1)">\u202e\x1b[31m'


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TailraceProcess]:
    data = tmp_path_factory.mktemp("console") / "data"
    with TailraceProcess(data, "-o", "group.initial.rebalance.delay.ms=0", "--metrics-port", "0") as running:
        records = "".join(json.dumps({"key": f"k{n}", "value": f"value {n}"}) + "\n" for n in range(500))
        (data.parent / "lines").write_text(records + json.dumps({"key": HOSTILE, "value": HOSTILE}) + "\n")
        create = ("topics", "create", "orders", "--partitions", "2", "--config", "retention.ms=86400000")
        assert command(*create, "--bootstrap", running.bootstrap).status == 0
        produce = ("produce", "orders", "--json", "--file", data.parent / "lines", "--partition", "0")
        assert command(*produce, "--bootstrap", running.bootstrap).status == 0
        consume = ("consume", "orders", "--group", "kitchen", "--from", "beginning", "--max", "100", "--values")
        assert command(*consume, "--bootstrap", running.bootstrap).status == 0
        yield running


@pytest.fixture(scope="module")
def console(broker: TailraceProcess) -> Iterator[Console]:
    with Console("--bootstrap", broker.bootstrap, "--data", str(broker.data)) as running:
        yield running


@pytest.mark.parametrize(
    ("path", "parameters", "words"),
    [
        ("topics/list", [], ["topics", "list"]),
        ("topics/list", [("internal", "")], ["topics", "list", "--internal"]),
        ("topics/describe", [("arg", "orders")], ["topics", "describe", "orders"]),
        ("configs/describe", [("topic", "orders"), ("all", "")], ["configs", "describe", "--topic", "orders", "--all"]),
        ("offsets", [("arg", "orders")], ["offsets", "orders"]),
        ("groups/list", [], ["groups", "list"]),
        ("groups/describe", [("arg", "kitchen")], ["groups", "describe", "kitchen"]),
        ("groups/lag", [], ["groups", "lag"]),
        ("transactions/list", [], ["transactions", "list"]),
        ("users/list", [], ["users", "list"]),
        ("quotas/list", [], ["quotas", "list"]),
        ("consume", [("arg", "orders"), ("from", "3"), ("max", "4")], ["consume", "orders", "--from=3", "--max=4"]),
        ("consume", [("arg", "orders"), ("key", "k7")], ["consume", "orders", "--key=k7"]),
        ("consume", [("arg", "orders"), ("where", "offset < 2")], ["consume", "orders", "--where=offset < 2"]),
        ("cluster/queries", [], ["cluster", "queries"]),
    ],
)
def test_an_answer_is_what_the_command_prints(
    console: Console, broker: TailraceProcess, path: str, parameters: list[tuple[str, str]], words: list[str]
) -> None:
    answer = console.get(path, *parameters)
    assert answer.status == 200
    assert answer.headers["tailrace-exit-status"] == "0"
    assert answer.text == printed(broker.bootstrap, *words)


def test_answers_about_files_are_what_the_log_commands_print(console: Console, broker: TailraceProcess) -> None:
    listed = console.get("log/ls", ("topic", "orders"), ("segments", ""))
    assert listed.text == command("log", "ls", broker.data, "--topic", "orders", "--segments", "--json").out
    explained = console.get("log/explain", ("topic", "orders"), ("partition", "0"), ("offset", "77"))
    words = ("log", "explain", broker.data, "--topic", "orders", "--partition", "0", "--offset", "77", "--json")
    assert explained.text == command(*words).out
    assert str(broker.data) in explained.headers["tailrace-command"]


def test_the_map_of_a_log_is_what_the_command_prints(console: Console, broker: TailraceProcess) -> None:
    parameters = ("topic", "orders"), ("partition", 0), ("config", "retention.bytes=5")
    words = ("--topic", "orders", "--partition", "0", "--config", "retention.bytes=5", "--json")
    assert console.get("log/map", *parameters).text == command("log", "map", broker.data, *words).out


def test_records_are_saved_as_parquet(console: Console) -> None:
    import io

    import pyarrow.parquet as pq

    connection = http.client.HTTPConnection(console.address, timeout=60)
    connection.request("GET", "/api/consume/parquet?arg=orders&from=3&max=4")
    response = connection.getresponse()
    assert response.getheader("Content-Disposition") == "attachment; filename*=UTF-8''orders.parquet"
    rows = pq.read_table(io.BytesIO(response.read())).to_pylist()
    connection.close()
    assert [(row["offset"], row["key"], row["value"]) for row in rows] == [
        (offset, b"k%d" % offset, b"value %d" % offset) for offset in range(3, 7)
    ]


def test_the_lag_of_a_group_is_recorded(broker: TailraceProcess) -> None:
    with Console("--bootstrap", broker.bootstrap, "--lag-every", "0.2") as console:
        deadline = time.monotonic() + 60
        while len(points := console.get("history/lag", ("arg", "kitchen")).json["points"]) < 3:
            assert time.monotonic() < deadline
            time.sleep(0.1)
        assert points[0]["lag"] == 401
        assert 0 < points[0]["seconds"] <= points[-1]["seconds"]
        assert points[0]["time"] < points[-1]["time"]


def test_many_viewers_of_the_traffic_cost_one_command(console: Console) -> None:
    host, _, port = console.address.partition(":")
    viewers = []
    for _ in range(20):  # more than the console runs live commands
        viewer = socket.create_connection((host, int(port)), timeout=60)
        viewer.sendall(b"GET /api/live/top?interval=1 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        viewers.append(viewer)
    for viewer in viewers:
        received = b""
        while b"data: {" not in received:
            received += viewer.recv(65_536)
        assert b"refused" not in received
        viewer.close()


def test_the_command_line_of_an_answer_gives_the_same_answer(console: Console) -> None:
    answer = console.get("consume", ("arg", "orders"), ("max", "3"))
    words = answer.headers["tailrace-command"].split()
    assert words[0] == "tailrace"
    assert command(*words[1:], "--json").out == answer.text


def test_an_error_is_that_of_the_command(console: Console) -> None:
    answer = console.get("topics/describe", ("arg", "nothing"))
    assert (answer.status, answer.headers["tailrace-exit-status"]) == (200, "2")
    assert "there is no topic 'nothing'" in answer.json["error"]["message"]
    refused = console.get("acls/list")
    assert refused.json["error"]["code"] == "SECURITY_DISABLED"


def test_live_records_arrive_as_events(console: Console, broker: TailraceProcess) -> None:
    connection = http.client.HTTPConnection(console.address, timeout=60)
    connection.request("GET", "/api/live/consume?arg=orders&from=-1&partition=0")
    response = connection.getresponse()
    assert response.headers["Content-Type"].startswith("text/event-stream")
    lines = (line for line in iter(response.readline, b"") if line.startswith(b"data: "))
    assert json.loads(next(lines)[6:])["value"] == HOSTILE
    (broker.data.parent / "more").write_text("fresh\n")
    produce = ("produce", "orders", "--file", broker.data.parent / "more", "--partition", "0")
    assert command(*produce, "--bootstrap", broker.bootstrap).status == 0
    assert json.loads(next(lines)[6:])["value"] == "fresh"
    connection.close()


def test_a_read_only_console_changes_nothing(console: Console, broker: TailraceProcess) -> None:
    for path in ("topics/create", "topics/delete", "configs/set", "groups/delete", "produce"):
        answer = console.post(path, ("arg", "orders"))
        assert answer.status == 400
        assert "--console-write" in answer.json["error"]["message"]
    assert "orders" in command("topics", "list", "--bootstrap", broker.bootstrap).out


def test_a_console_with_write_changes_what_the_commands_change(broker: TailraceProcess) -> None:
    with Console("--bootstrap", broker.bootstrap, "--console-write") as console:
        made = console.post("topics/create", ("arg", "made"), ("partitions", 3), ("config", "retention.ms=5000"))
        assert made.json["created"][0]["partitionCount"] == 3
        assert console.ask("GET", "/api/topics/delete?arg=made").status == 405
        written = console.post("produce", ("arg", "made"), body='{"key":"a","value":"b"}\n')
        assert written.headers["tailrace-exit-status"] == "0"
        assert console.get("consume", ("arg", "made")).json["value"] == "b"
        plan = console.post("groups/reset", ("arg", "kitchen"), ("to-earliest", ""))
        assert (plan.json["executed"], plan.json["offsets"][0]["to"]) == (False, 0)
        assert console.post("topics/delete", ("arg", "made")).json == {"deleted": ["made"]}


def test_requests_of_other_sites_are_refused(console: Console) -> None:
    assert console.ask("GET", "/api/topics/list", host="evil.example").status == 403
    assert console.ask("GET", "/api/topics/list", origin="http://evil.example").status == 403
    assert console.ask("POST", "/api/topics/delete?arg=orders").status == 403
    assert console.ask("OPTIONS", "/api/topics/list", origin="http://evil.example").status == 403


def test_every_response_forbids_foreign_scripts_and_frames(console: Console) -> None:
    for target in ("/", "/app.js", "/api/session", "/api/topics/list", "/nothing"):
        headers = console.ask("GET", target).headers
        assert "default-src 'none'; script-src 'self'" in headers["content-security-policy"], target
        assert "frame-ancestors 'none'" in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize(
    "name", ["../console.py", "..%2fconsole.py", "%2e%2e/console.py", "/etc/passwd", "static/app.js"]
)
def test_only_the_files_of_the_page_are_served(console: Console, name: str) -> None:
    assert console.ask("GET", f"/{name}").status == 404


def test_the_whole_page_is_small(console: Console) -> None:
    seen = [console.ask("GET", f"/{name}").text for name in ("", "app.js", "dom.js", "console.css", "log.js")]
    assert all(seen)
    folder = Path(tailrace.__file__).parent / "cli" / "console" / "static"
    assert sum(file.stat().st_size for file in folder.iterdir()) < 300_000


def memory_mb(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) / 1024


def test_hundreds_of_clients_that_do_not_read_delay_no_other_client(console: Console) -> None:
    console.get("topics/list")
    before = memory_mb(console.pid)
    host, _, port = console.address.partition(":")
    held: list[socket.socket] = []
    for number in range(300):
        with suppress(OSError):
            client = socket.create_connection((host, int(port)), timeout=10)
            client.sendall(
                b"GET /api/live/consume?arg=orders HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" if number % 2 else b"GET /"
            )
            held.append(client)
    for client in held:
        client.close()
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        with suppress(OSError, http.client.HTTPException, json.JSONDecodeError):
            if console.get("topics/list").status == 200:
                break
        time.sleep(0.2)
    assert console.get("topics/list").status == 200
    assert memory_mb(console.pid) < before + 40


# A console for users of a secured broker

SECURED = {
    "listeners": "SECURE://127.0.0.1:0",
    "listener.security.protocol.map": "SECURE:SASL_PLAINTEXT",
    "sasl.enabled.mechanisms": "PLAIN",
    "listener.name.secure.plain.sasl.jaas.config": jaas(
        "Plain", "x", "x", admin="admin-secret", reader="reader-secret"
    ),
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:admin",
}


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConsoleClient]:
    folder = tmp_path_factory.mktemp("secured")
    data = folder / "data"
    with tailrace.Broker(str(data), config=SECURED) as broker:
        bootstrap = f"127.0.0.1:{broker._running().port('SECURE')}"
        config = write_client_file(folder / "client", security_protocol="SASL_PLAINTEXT", sasl_mechanism="PLAIN")
        words: tuple[Any, ...] = ("--bootstrap", bootstrap, "--command-config", config)
        admin = ("-X", "sasl.username=admin", "-X", "sasl.password=admin-secret")
        for topic in ("open", "closed"):
            assert command("topics", "create", topic, *words, *admin).status == 0
        rights = ("acls", "add", "--principal", "User:reader", "--topic", "open", "--operation", "read")
        assert command(*rights, *words, *admin).status == 0
        with Console("--login", "--data", str(data), *map(str, words)) as console:
            console.words = tuple(map(str, words))
            yield console


def test_without_a_login_nothing_is_shown(secured: ConsoleClient) -> None:
    stranger = ConsoleClient(secured.address)
    assert stranger.get("session").json["hasLogin"]
    for path in ("topics/list", "log/ls", "live/consume", "consume", "configs/describe"):
        assert stranger.get(path, ("arg", "open")).status == 401
    assert stranger.log_in("reader", "wrong").status == 401
    assert stranger.log_in("-Xnobody=1", "wrong").status == 401
    assert stranger.get("topics/list").status == 401


def test_an_address_with_too_many_failed_logins_has_to_wait(secured: ConsoleClient) -> None:
    with Console("--login", *secured.words) as other:
        for _ in range(FAILURES_MAX):
            assert other.log_in("reader", "wrong").status == 401
        refused = other.log_in("reader", "reader-secret")
        assert refused.status == 429
        assert "too many failed logins from 127.0.0.1: try again in" in refused.text
        assert 0 < int(refused.headers["retry-after"]) <= 300


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"security_protocol": "SSL"}, "not SSL; a console cannot pass on the client certificate of a browser"),
        ({}, "not PLAINTEXT"),
        ({"security_protocol": "SASL_SSL"}, "SCRAM-SHA-512, not missing"),
        ({"security_protocol": "SASL_SSL", "sasl_mechanism": "OAUTHBEARER"}, "SCRAM-SHA-512, not OAUTHBEARER"),
    ],
)
def test_a_login_without_passwords_is_refused(settings: dict[str, str], sentence: str, tmp_path: Path) -> None:
    client = write_client_file(tmp_path / "client", **settings)
    ran = command("console", "--login", "--listen", "127.0.0.1:0", "--command-config", client)
    assert ran.status == 2
    assert sentence in ran.err


def test_a_deeply_nested_login_is_malformed(secured: ConsoleClient) -> None:
    assert secured.post("login", body="[" * 100_000).status == 400


def test_a_visitor_sees_what_the_access_control_lists_allow(secured: ConsoleClient) -> None:
    reader = ConsoleClient(secured.address)
    assert reader.log_in("reader", "reader-secret").status == 200
    assert reader.get("live/top").status == 403
    assert reader.get("explain/waiting").status == 403
    assert reader.get("session").json["user"] == "reader"
    assert [one["name"] for one in reader.get("topics/list").json["topics"]] == ["open"]
    assert "error" in reader.get("topics/describe", ("arg", "closed")).json
    assert reader.get("log/ls", ("topic", "open")).status == 200
    assert reader.get("log/ls", ("topic", "closed")).status == 403
    assert reader.get("log/explain", ("topic", "closed"), ("partition", 0), ("offset", 0)).status == 403
    admin = ConsoleClient(secured.address)
    assert admin.log_in("admin", "admin-secret").status == 200
    assert len(admin.get("topics/list").json["topics"]) == 2
    assert admin.get("log/ls", ("topic", "closed")).status == 200
    assert reader.post("logout").status == 200
    assert reader.get("topics/list").status == 401


def test_no_answer_has_a_password(secured: ConsoleClient) -> None:
    admin = ConsoleClient(secured.address)
    admin.log_in("admin", "admin-secret")
    for path in ("session", "topics/list", "users/list", "configs/describe"):
        answer = admin.get(path, *([("broker", "1"), ("all", "")] if path == "configs/describe" else []))
        assert "admin-secret" not in answer.text + str(answer.headers), path
        assert "reader-secret" not in answer.text, path


# Beside a broker


def console_of(broker: int) -> int:
    """Return the process id of a broker's console, which starts after the broker."""
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        for child in Path(f"/proc/{broker}/task/{broker}/children").read_text().split():
            if "\0console\0" in Path(f"/proc/{child}/cmdline").read_text():
                return int(child)
        time.sleep(0.02)
    raise AssertionError("the broker has no console")


def test_serve_starts_a_console_that_ends_with_the_broker(tmp_path: Path) -> None:
    with TailraceProcess(tmp_path / "data", "--console", "127.0.0.1:0") as broker:
        assert broker.process is not None
        console = console_of(broker.process.pid)
        os.kill(broker.process.pid, signal.SIGKILL)
        broker.process.wait()
        deadline = time.monotonic() + 20
        while Path(f"/proc/{console}").exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        assert not Path(f"/proc/{console}").exists()


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (
            ["--console", "0.0.0.0:8080"],
            "--console 0.0.0.0: other machines can reach this address, so the console needs",
        ),
        (["--console", "0.0.0.0:8080"], "needs --console-login and --console-tls-certificate FILE there"),
        (["--console", "nowhere"], "write HOST:PORT"),
        (["--console-write"], "--console-write needs --console"),
        (["--console-lag-every", "5"], "--console-lag-every needs --console"),
        (["--console-host-name", "kafka"], "--console-host-name needs --console"),
        (["--console", "--console-login"], "--console-login and --console-config FILE need each other"),
        (["--console", "--console-config", "f"], "--console-login and --console-config FILE need each other"),
        (["--console", "--console-tls-key", "f"], "--console-tls-key needs --console-tls-certificate FILE"),
        (["--console", "--console-tls-certificate", "/nowhere"], "--console-tls-certificate /nowhere: No such file"),
    ],
)
def test_an_impossible_console_is_refused_before_the_broker_starts(
    tmp_path: Path, words: list[str], sentence: str
) -> None:
    ran = command("serve", "--data", tmp_path / "data", *words)
    assert ran.status == 2
    assert sentence in ran.err
    assert not (tmp_path / "data").exists()


def console_address(broker: TailraceProcess) -> str:
    """Return the address at which the console beside a broker listens."""
    assert broker.process is not None
    console = console_of(broker.process.pid)
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        inodes = {
            os.readlink(one)[8:-1] for one in Path(f"/proc/{console}/fd").iterdir() if "socket:[" in os.readlink(one)
        }
        for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
            words = line.split()
            if words[3] == "0A" and words[9] in inodes:
                return f"127.0.0.1:{int(words[1].partition(':')[2], 16)}"
        time.sleep(0.05)
    raise AssertionError("the console does not listen")


def test_a_console_beside_a_broker_draws_partitions_of_every_directory(tmp_path: Path) -> None:
    with TailraceProcess(tmp_path / "a", "--data", str(tmp_path / "b"), "--console", "127.0.0.1:0") as broker:
        create = ("topics", "create", "orders", "--partitions", "4", "--bootstrap", broker.bootstrap)
        assert command(*create).status == 0
        found = {one.parent.name for one in tmp_path.glob("*/orders-*")}
        assert found == {"a", "b"}, "the partitions are in both directories"
        console = ConsoleClient(console_address(broker))
        for number in range(4):
            (folder,) = tmp_path.glob(f"*/orders-{number}")
            answer = console.get("log/map", ("topic", "orders"), ("partition", number))
            assert answer.json["logEndOffset"] == 0, answer.text
            assert str(folder.parent) in answer.headers["tailrace-command"]
        assert console.get("history/lag", ("arg", "kitchen")).json["intervalS"] == 30.0


def test_a_login_over_tls_beside_a_broker_works_as_with_the_console_command(tmp_path: Path) -> None:
    settings = {**SECURED, "inter.broker.listener.name": "SECURE"}
    client = write_client_file(tmp_path / "client", security_protocol="SASL_PLAINTEXT", sasl_mechanism="PLAIN")
    certificate = ("--console-tls-certificate", str(TLS / "broker.pem"))
    words = [word for name, value in settings.items() for word in ("-o", f"{name}={value}")]
    words += ["--console", "127.0.0.1:0", "--console-login", "--console-config", str(client), *certificate]
    with TailraceProcess(tmp_path / "data", *words, "--console-lag-every", "0") as broker:
        address = console_address(broker)
        context = ssl.create_default_context(cafile=str(TLS / "authority.pem"))
        context.check_hostname = False

        def ask(method: str, target: str, body: str = "", **headers: str) -> tuple[int, Any, str]:
            connection = http.client.HTTPSConnection(address, timeout=60, context=context)
            connection.request(method, target, body, {"X-Tailrace-Console": "1", **headers})
            response = connection.getresponse()
            return response.status, json.loads(response.read()), response.getheader("Set-Cookie") or ""

        assert ask("GET", "/api/topics/list")[0] == 401
        status, _, cookie = ask("POST", "/api/login", json.dumps({"user": "admin", "password": "admin-secret"}))
        assert status == 200
        assert "Secure" in cookie
        status, document, _ = ask("GET", "/api/topics/list", Cookie=cookie.partition(";")[0])
        assert (status, document["topics"]) == (200, [])
