"""Every client command has the same exit statuses: 2 for what does not exist, 130 for Ctrl-C. Errors can be JSON."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import tailrace
from tests.support.command import commands_that_connect
from tests.support.command import tailrace as command

# Arguments of every command that connects to a cluster, for a topic, group, … that does not exist.
EVERY: dict[str, str] = {
    "cluster status": "",
    "cluster queries": "",
    "topics list": "",
    "topics describe": "nope",
    "topics create": "bad/name",
    "topics delete": "nope",
    "topics alter": "nope --partitions 2",
    "topics trim": "nope --before latest --yes",
    "configs describe": "--topic nope",
    "configs set": "--topic nope retention.ms=1",
    "configs unset": "--topic nope retention.ms",
    "produce": "nope --file FILE",
    "consume": "nope",
    "offsets": "nope",
    "groups list": "",
    "groups describe": "nope",
    "groups lag": "nope",
    "groups reset": "nope --topic nope --to-latest --yes",
    "groups delete": "nope",
    "groups delete-offsets": "nope --topic nope",
    "transactions list": "",
    "transactions describe": "nope",
    "transactions find-hanging": "--topic nope",
    "transactions abort": "nope-0 --start-offset 0",
    "acls list": "",
    "acls add": "--principal User:x --operation Read --topic nope",
    "acls remove": "--principal User:x --yes",
    "users list": "",
    "users set": "nope --password-file FILE",
    "users remove": "nope",
    "quotas list": "",
    "quotas set": "--user nope producer_byte_rate=1",
    "quotas remove": "--user nope",
    "reassign plan": "--topic nope",
    "reassign apply": "PLAN",
    "reassign status": "PLAN",
    "reassign cancel": "PLAN --yes",
    "reassign unthrottle": "PLAN",
    "elect preferred": "--topic nope",
    "elect unclean": "--topic nope --yes",
    "tier verify": "nope",
    "tier gc": "nope --yes",
    "shards rebalance": "",
    "top": "--once",
}
NOT_JSON = {"reassign plan"}  # its output is a plan in JSON anyway
# Commands whose subject does not exist at the broker, and the part of the error that names it.
NOT_THERE = {
    "topics describe": "there is no topic 'nope'",
    "topics delete": "there is no topic 'nope'",
    "topics alter": "there is no topic 'nope'",
    "topics trim": "there is no topic 'nope'",
    "configs describe": "there is no topic 'nope'",
    "produce": "there is no topic 'nope'",
    "consume": "there is no topic 'nope'",
    "offsets": "there is no topic 'nope'",
    "groups describe": "there is no group nope",
    "groups lag": "there is no group nope",
    "groups delete": "there is no group nope",
    "groups reset": "there is no topic 'nope'",
    "groups delete-offsets": "there is no group nope",
    "transactions describe": "there is no transactional id nope",
    "transactions find-hanging": "there is no topic 'nope'",
    "transactions abort": "there is no topic 'nope'",
    "users remove": "user nope has no SCRAM credentials",
    "quotas remove": "user nope has no quota",
    "reassign plan": "there is no topic 'nope'",
    "elect preferred": "there is no topic 'nope'",
    "elect unclean": "there is no topic 'nope'",
    "tier verify": "nope: No such file or directory",
    "tier gc": "nope: No such file or directory",
}


@pytest.fixture(scope="module")
def broker() -> Iterator[tailrace.Broker]:
    with tailrace.Broker() as running:
        running.create_topic("orders")
        yield running


@pytest.fixture
def bootstrap(broker: tailrace.Broker) -> str:
    return broker.bootstrap


def words_of(name: str, directory: Path) -> list[str]:
    plan, file = directory / "plan.json", directory / "file"
    plan.write_text('{"version": 1, "partitions": [{"topic": "nope", "partition": 0, "replicas": [1]}]}')
    file.write_text("secret\n")
    words = f"{name} {EVERY[name]}".split()
    return [str({"PLAN": plan, "FILE": file}.get(word, word)) for word in words]


def test_this_file_has_every_command_that_connects() -> None:
    assert commands_that_connect() == set(EVERY)


@pytest.mark.parametrize("name", EVERY)
def test_without_a_broker_every_command_prints_one_error_with_status_2(name: str, tmp_path: Path) -> None:
    arguments = [*words_of(name, tmp_path), "--bootstrap", "127.0.0.1:1", "--timeout", "1"]
    ran = command(*arguments)
    assert (ran.status, ran.out) == (2, "")
    assert ran.err.startswith("tailrace: no broker can be reached at 127.0.0.1:1: connection refused")
    if name not in NOT_JSON:
        ran = command(*arguments, "--json")
        assert (ran.status, ran.out) == (2, "")
        error = json.loads(ran.err)["error"]
        assert (error["status"], error["message"][:42]) == (2, "no broker can be reached at 127.0.0.1:1: c")


@pytest.mark.parametrize("name", NOT_THERE)
def test_a_subject_that_does_not_exist_is_named_with_status_2(name: str, bootstrap: str, tmp_path: Path) -> None:
    arguments = [*words_of(name, tmp_path), "--bootstrap", bootstrap]
    ran = command(*arguments)
    assert (ran.status, ran.out, ran.err.count("\n")) == (2, "", 1)
    assert NOT_THERE[name] in ran.err
    if name not in NOT_JSON:
        ran = command(*arguments, "--json")
        error = json.loads(ran.err)["error"]
        assert (ran.status, error["status"]) == (2, 2)
        assert NOT_THERE[name] in error["message"]


@pytest.mark.parametrize("words", [[], ["topics"], ["groups"], ["job"]], ids=" ".join)
def test_a_command_without_its_verb_prints_its_help_with_status_2(words: list[str]) -> None:
    ran = command(*words)
    assert (ran.status, ran.out) == (2, "")
    assert ran.err == command(*words, "--help").out


def test_an_offset_after_the_end_of_a_partition_is_reported(bootstrap: str) -> None:
    ran = command("consume", "orders", "--from", "99", "--bootstrap", bootstrap)
    assert (ran.status, ran.out) == (0, "")
    assert ran.err == "tailrace: --from 99 is after the end of partitions of the topic: 0 ends at 0\n"


@pytest.mark.parametrize(
    "words",
    [
        ["consume", "orders", "--follow"],
        ["consume", "orders", "--follow", "--group", "interrupted"],
        ["produce", "orders"],
        ["top", "--interval", "30"],
        ["cluster", "status", "--watch", "30"],
        ["cluster", "status", "--wait", "30", "--brokers", "2"],
    ],
    ids=" ".join,
)
def test_ctrl_c_ends_a_waiting_command_with_130(words: list[str], broker: tailrace.Broker, interruptible: None) -> None:
    accepted = connections_accepted(broker)
    process = subprocess.Popen(
        [sys.executable, "-m", "tailrace", *words, "--bootstrap", broker.bootstrap],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + 120
    while connections_accepted(broker) == accepted:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.05)
    time.sleep(0.5)  # the command has connected; now most of them wait
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert (process.returncode, errors.strip()) == (130, "")


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Let child processes have SIGINT, which is ignored if a shell runs the tests in the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def connections_accepted(broker: tailrace.Broker) -> int:
    """Return a number that rises with each connection. Some commands close theirs soon, so sockets are not counted."""
    return broker._running().statistics().accepted


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_closed_standard_stream_is_like_the_null_device(closed: str, bootstrap: str) -> None:
    line = f"exec {sys.executable} -m tailrace topics list --bootstrap {bootstrap} {closed}"
    done = subprocess.run(["sh", "-c", line], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    assert ("orders" in done.stdout) == (">&-" not in closed.replace("2>&-", ""))


def test_configs_are_explained_on_request(bootstrap: str) -> None:
    keys = ["retention.ms", "segment.bytes"]
    command("topics", "create", "explained", "--bootstrap", bootstrap)
    plain = command("configs", "describe", "--topic", "explained", *keys, "--bootstrap", bootstrap)
    assert len(plain.out.splitlines()) == 3
    explained = command("configs", "describe", "--topic", "explained", *keys, "--explain", "--bootstrap", bootstrap)
    assert explained.out.splitlines()[0] == plain.out.splitlines()[0]
    assert "    A segment is removed when its newest record is older than this; -1 sets no limit." in explained.out
