"""`tailrace topics|configs|produce|consume|offsets` with a real cluster, of Apache Kafka and of Tailrace."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from threading import Timer

import pytest

from tests.support.command import Ran, tailrace
from tests.support.kafka_broker import free_port
from tests.support.log_oracle import LogOracle
from tests.support.oracle_types import OracleRecord

NOW_MS = 1_700_000_000_000
KEPT = ["--config", "retention.ms=-1"]  # records have the timestamp NOW_MS


class Command:
    """`tailrace` with --bootstrap, in this process, or in another one if it needs standard input or signals."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap

    def __call__(self, *arguments: object) -> Ran:
        return tailrace(*arguments, "--bootstrap", self.bootstrap)

    def ok(self, *arguments: object) -> Ran:
        ran = self(*arguments)
        assert (ran.status, ran.err) == (0, "")
        return ran

    def until(self, word: str, *arguments: object) -> Ran:
        """Repeat a command until a text appears: a broker learns of a change shortly after the controller."""
        deadline = time.monotonic() + 10
        while word not in (ran := self.ok(*arguments)).out and time.monotonic() < deadline:
            time.sleep(0.02)
        return ran

    @contextmanager
    def start(self, *arguments: object) -> Iterator[subprocess.Popen[str]]:
        """Start a command. It is ended if the test fails or times out."""
        command = [sys.executable, "-m", "tailrace", *map(str, arguments), "--bootstrap", self.bootstrap]
        pipe = subprocess.PIPE
        # A test suite in the background of a shell ignores Ctrl-C, and its children would inherit that.
        receive = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
        with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True, preexec_fn=receive) as process:
            deadline = Timer(60, process.kill)
            deadline.start()
            try:
                yield process
            except BaseException:
                process.kill()
                raise
            finally:
                deadline.cancel()

    def fed(self, text: str, *arguments: object) -> Ran:
        with self.start(*arguments) as process:
            out, err = process.communicate(text, timeout=60)
        return Ran(process.returncode, out, err)


@pytest.fixture
def command(bootstrap: str) -> Command:
    return Command(bootstrap)


@pytest.fixture
def lines(tmp_path: Path) -> Callable[..., Path]:
    """Write lines to a file for `produce`."""

    def write(*texts: str) -> Path:
        path = tmp_path / "lines"
        path.write_text("".join(f"{text}\n" for text in texts))
        return path

    return write


def assert_one_sentence(ran: Ran, status: int, *words: str) -> None:
    assert (ran.status, ran.out) == (status, "")
    if not ran.err.startswith("tailrace: "):
        assert json.loads(ran.err)["error"]["status"] == status
    assert ran.err.count("\n") == 1
    for word in words:
        assert word in ran.err


def json_error(ran: Ran, status: int) -> str:
    """Return the message of the error that a command with --json printed."""
    assert (ran.status, ran.out) == (status, "")
    error = json.loads(ran.err)["error"]
    assert error["status"] == status
    return str(error["message"])


def test_topics_are_created_listed_altered_and_deleted(command: Command, topic: str) -> None:
    ran = command.ok("topics", "create", topic, "--partitions", 2, "--config", "retention.ms=60000")
    assert ran.out == f"{topic}: created with 2 partitions and 1 replica\n"
    (listed,) = [line for line in command.ok("topics", "list").lines if line.split()[0] == topic]
    assert listed.split()[1:3] == ["2", "1"]
    described = command.until("retention.ms", "topics", "describe", topic).lines
    assert described[0].startswith(f"{topic}  ·  2 partitions  ·  1 replica  ·  id ")
    assert described[1] == "  retention.ms=60000"
    assert described[2].split() == ["PARTITION", "LEADER", "EPOCH", "REPLICAS", "IN", "SYNC", "OFFLINE"]
    assert [line.split() for line in described[3:]] == [[n, "1", "0", "1", "1", "-"] for n in "01"]
    (found,) = command.ok("topics", "describe", topic, "--json").json["topics"]
    assert found["configs"] == {"retention.ms": "60000"}
    assert found["partitions"][1] == {
        "partition": 1, "leader": 1, "leaderEpoch": 0, "replicas": [1], "isr": [1], "offlineReplicas": [],
    }  # fmt: skip
    named = {one["name"]: one for one in command.ok("topics", "list", "--json").json["topics"]}
    assert named[topic]["id"] == found["id"]
    assert command.ok("topics", "describe", topic, "--unhealthy").out == ""
    assert command.ok("topics", "alter", topic, "--partitions", 3).out == f"{topic}: 3 partitions instead of 2\n"
    assert command.ok("topics", "delete", topic).out == f"{topic}: deleted\n"
    assert command.ok("topics", "delete", topic, "--if-exists").out == ""
    assert topic not in command.ok("topics", "list").out


def test_refused_topics_are_reported_in_one_sentence(command: Command, topic: str) -> None:
    command.ok("topics", "create", topic)
    assert_one_sentence(command("topics", "create", topic), 1, "TOPIC_ALREADY_EXISTS")
    assert command.ok("topics", "create", topic, "--if-not-exists").out == f"{topic}: exists already\n"
    assert_one_sentence(command("topics", "create", "a/b"), 1, "INVALID_TOPIC_EXCEPTION")
    assert_one_sentence(command("topics", "alter", topic, "--partitions", 1), 1, "INVALID_PARTITIONS")
    assert_one_sentence(command("topics", "delete", "no-such-topic"), 2, "there is no topic 'no-such-topic'")
    assert_one_sentence(command("topics", "describe", "no-such-topic"), 2, command.bootstrap)
    assert_one_sentence(command("topics", "create", topic, "--config", "x"), 2, "KEY=VALUE")
    several = command("topics", "create", topic, f"{topic}2", "a/b", "--json")
    assert several.status == 1
    assert [one["name"] for one in several.json["created"]] == [f"{topic}2"]
    assert several.err.count("\n") == 2
    assert command.ok("topics", "create", f"{topic}3", "--dry-run").out == f"{topic}3: valid, not created\n"
    assert command.ok("topics", "delete", topic, f"{topic}2", "--json").json == {"deleted": [topic, f"{topic}2"]}


def test_configs_are_described_set_and_unset(command: Command, topic: str) -> None:
    command.ok("topics", "create", topic)
    ran = command.ok("configs", "set", "--topic", topic, "retention.ms=1000", "cleanup.policy+=compact")
    assert ran.out == f"topic {topic}: retention.ms=1000\ntopic {topic}: cleanup.policy+=compact\n"
    rows = [line.split() for line in command.until("compact", "configs", "describe", "--topic", topic).lines]
    assert rows[0] == ["KEY", "VALUE", "FROM"]
    assert ["retention.ms", "1000", "topic"] in rows
    assert ["cleanup.policy", "delete,compact", "topic"] in rows
    found = command.ok("configs", "describe", "--topic", topic, "retention.ms", "segment.bytes", "--json").json
    assert found["resource"] == {"type": "topic", "name": topic}
    assert [(one["name"], one["value"], one["source"], one["type"]) for one in found["configs"]] == [
        ("retention.ms", "1000", "TOPIC_CONFIG", "LONG"),
        ("segment.bytes", "1073741824", "DEFAULT_CONFIG", "INT"),
    ]
    assert len(command.ok("configs", "describe", "--topic", topic, "--all").lines) > 25
    ran = command.ok("configs", "unset", "--topic", topic, "retention.ms")
    assert ran.out == f"topic {topic}: retention.ms reset to its default\n"
    assert "node.id" in command.ok("configs", "describe", "--broker", 1).out
    assert_one_sentence(command("configs", "set", "--topic", topic, "retention.ms=x"), 1, "INVALID_CONFIG")
    assert_one_sentence(command("configs", "describe", "--topic", topic, "no.such.key"), 2, "no.such.key")
    assert_one_sentence(command("configs", "describe", "--topic", "no-such-topic"), 2, "no-such-topic")
    assert_one_sentence(command("configs", "describe", "--broker", 7), 2, "no active broker 7; active brokers: 1")


@pytest.mark.kafka
def test_consume_prints_the_records_of_the_java_consumer(command: Command, topic: str, log_oracle: LogOracle) -> None:
    command.ok("topics", "create", topic, *KEPT)
    written = [
        OracleRecord(key=b"key-%d" % n, value=None if n == 3 else b"value-%d" % n, timestamp=NOW_MS + n)
        for n in range(20)
    ]
    with log_oracle.connect(command.bootstrap) as java:
        java.produce(topic, 0, written[:10], written[10:], config={"compression.type": "zstd"})
        read = [(one.offset, one.timestamp, one.key, one.value) for one in java.consume(topic, 0)]
    shown = [
        (one["offset"], one["timestamp"], one["key"].encode(), one["value"] and one["value"].encode())
        for one in command.ok("consume", topic, "--json").json_lines
    ]
    assert shown == read


@pytest.mark.kafka
def test_the_java_consumer_reads_the_records_of_produce(
    command: Command, topic: str, lines: Callable[..., Path], log_oracle: LogOracle
) -> None:
    command.ok("topics", "create", topic, "--partitions", 3)
    for number, codec in enumerate(("none", "gzip", "snappy", "lz4", "zstd")):
        path = lines(*(f"h:{n},x:y\tkey-{n}:value-{n}" for n in range(number * 10, number * 10 + 10)))
        options = ["--headers", "--key-separator", ":", "--compression", codec, "--header", "all=1"]
        ran = command.ok("produce", topic, "--file", path, *options, "--batch-bytes", 300)
        assert sum(int(line.split()[1]) for line in ran.lines) == 10
    with log_oracle.connect(command.bootstrap) as java:
        read = [one for number in range(3) for one in java.consume(topic, number)]
    assert {(one.key, one.value) for one in read} == {(b"key-%d" % n, b"value-%d" % n) for n in range(50)}
    assert all(one.headers == ((b"h", (one.key or b"")[4:]), (b"x", b"y"), (b"all", b"1")) for one in read)


def values(ran: Ran) -> list[str]:
    assert (ran.status, ran.err) == (0, "")
    return [one["value"] for one in ran.json_lines]


def test_consume_starts_at_every_form_of_from(command: Command, topic: str, lines: Callable[..., Path]) -> None:
    command.ok("topics", "create", topic, *KEPT)
    records = [json.dumps({"value": f"v{n}", "timestamp": NOW_MS + 1000 * n}) for n in range(10)]
    command.ok("produce", topic, "--json", "--file", lines(*records), "--batch-bytes", 200)

    def consume(*options: object) -> list[str]:
        return values(command("consume", topic, "--json", *options))

    everything = [f"v{n}" for n in range(10)]
    assert consume() == consume("--from", "beginning") == consume("--from", 0) == everything
    assert consume("--from", "latest") == consume("--from", 10) == []
    assert consume("--from", 7) == consume("--from", -3) == everything[7:]
    assert consume("--from", -99) == everything
    late = command("consume", topic, "--json", "--from", 99)
    assert (late.status, late.out) == (0, "")
    assert "0 ends at 10" in json.loads(late.err)["warning"]["message"]
    assert consume("--from", f"@{NOW_MS + 4001}") == consume("--from", "2023-11-14T22:13:25Z") == everything[5:]
    assert consume("--from", "2030-01-01") == []
    assert consume("--from", 2, "--max", 3) == everything[2:5]
    assert consume("--follow", "--from", 8, "--max", 2) == everything[8:]
    assert consume("--grep", "v[37]") == ["v3", "v7"]


def test_offsets_are_printed_by_partition(command: Command, topic: str, lines: Callable[..., Path]) -> None:
    command.ok("topics", "create", topic, "--partitions", 2, *KEPT)
    records = [json.dumps({"value": f"v{n}", "timestamp": NOW_MS + 1000 * n}) for n in range(5)]
    command.ok("produce", topic, "--json", "--partition", 1, "--file", lines(*records))
    assert [line.split() for line in command.ok("offsets", topic).lines] == [
        ["TOPIC", "PARTITION", "EARLIEST", "LATEST", "SPAN"],
        [topic, "0", "0", "0", "0"],
        [topic, "1", "0", "5", "5"],
    ]
    found = command.ok("offsets", topic, "--at", NOW_MS + 1500, "--max-timestamp", "--json").json["partitions"]
    assert found == [
        {"topic": topic, "partition": 0, "earliest": 0, "latest": 0, "at": None, "maxTimestamp": None},
        {
            "topic": topic, "partition": 1, "earliest": 0, "latest": 5,
            "at": {"offset": 2, "timestamp": NOW_MS + 2000}, "maxTimestamp": {"offset": 4, "timestamp": NOW_MS + 4000},
        },
    ]  # fmt: skip
    (row,) = command.ok("offsets", topic, "--partition", 1, "--at", "2030-01-01").lines[1:]
    assert row.split() == [topic, "1", "0", "5", "5", "-", "-"]
    assert topic in command.ok("offsets").out
    assert_one_sentence(command("offsets", topic, "--partition", 2), 2, "has no partition 2")


def pairs(ran: Ran) -> list[tuple[str | None, str | None]]:
    return [(one["key"], one["value"]) for one in ran.json_lines]


def test_a_topic_is_copied_through_a_pipe(command: Command, topic: str, lines: Callable[..., Path]) -> None:
    """Bytes that are not text, nulls, headers, timestamps and partitions are kept."""
    copy = f"{topic}-copy"
    command.ok("topics", "create", topic, copy, "--partitions", 3, *KEPT)
    records = [
        {"key": "k", "value": "v", "headers": [{"key": "h", "value": "/w==", "valueEncoding": "base64"}]},
        {"key": "//4=", "keyEncoding": "base64", "value": None, "partition": 2},
        {"value": "a\nb\t", "timestamp": NOW_MS, "partition": 1, "headers": [{"key": "n", "value": None}]},
        {"key": None, "value": "", "partition": 0},
    ]
    path = lines(*map(json.dumps, records))
    report = command.ok("produce", topic, "--json", "--file", path).json
    assert (report["topic"], report["records"]) == (topic, 4)
    before = command.ok("consume", topic, "--json")
    assert command.fed(before.out, "produce", copy, "--json").status == 0
    after = command.ok("consume", copy, "--json").json_lines
    assert [{**one, "topic": topic} for one in after] == before.json_lines
    # The same with --encoding.
    encoded = command.ok("consume", topic, "--json", "--encoding", "hex")
    assert command.fed(encoded.out, "produce", copy, "--json", "--encoding", "hex", "--repartition").status == 0
    pairs = [
        (one["key"], one["value"]) for one in command.ok("consume", copy, "--json", "--encoding", "hex").json_lines
    ]
    assert sorted(pairs, key=str) == sorted([(one["key"], one["value"]) for one in encoded.json_lines] * 2, key=str)


def test_malformed_lines_are_refused_in_one_sentence(command: Command, topic: str, lines: Callable[..., Path]) -> None:
    command.ok("topics", "create", topic, "--config", "max.message.bytes=300")

    def produce(text: str, *options: object) -> Ran:
        return command("produce", topic, "--file", lines(text), *options)

    assert_one_sentence(produce("x", "--key-separator", ":"), 1, "line 1", "(0 records were written)")
    assert "line 1: not JSON" in json_error(produce("{", "--json"), 1)
    assert "has no partition 7; it has 0 to 0" in json_error(produce('{"value":"v","partition":7}', "--json"), 1)
    assert_one_sentence(produce("x" * 500), 1, "MESSAGE_TOO_LARGE")
    assert_one_sentence(produce("x", "--partition", 1), 2, "has no partition 1")
    assert_one_sentence(command("produce", topic, "--file", "/no/such/file"), 2, "/no/such/file")
    assert_one_sentence(command("produce", "no-such-topic", "--file", lines("x")), 2, "no-such-topic")
    assert command.ok("consume", topic).out == ""


def test_typed_lines_reach_a_following_consumer(command: Command, topic: str) -> None:
    """Each line arrives while both commands run; Ctrl-C ends the consumer without an error."""
    command.ok("topics", "create", topic, "--partitions", 2)
    with command.start("consume", topic, "--follow", "--from", "beginning", "--values") as reader:
        with command.start("produce", topic, "--quiet") as writer:
            assert writer.stdin is not None
            assert reader.stdout is not None
            for text in ("first", "second", "größer"):
                writer.stdin.write(f"{text}\n")
                writer.stdin.flush()
                assert reader.stdout.readline() == f"{text}\n"
            writer.stdin.close()
            assert writer.wait(30) == 0
        reader.send_signal(signal.SIGINT)
        assert reader.wait(30) == 130
        assert reader.stderr is not None
        assert (reader.stdout.read(), reader.stderr.read()) == ("", "\n")


def test_produce_reads_standard_input_to_its_end(command: Command, topic: str) -> None:
    command.ok("topics", "create", topic)
    ran = command.fed("one\r\ntwo\n\nlast", "produce", topic, "--acks", 1)
    assert (ran.status, ran.out, ran.err) == (0, f"{topic}-0: 4 records at offsets 0 to 3\n", "")
    assert values(command("consume", topic, "--json")) == ["one", "two", "", "last"]
    ran = command.fed("", "produce", topic)
    assert (ran.status, ran.out) == (0, "no records written: the input was empty\n")
    ran = command.fed("x\n", "produce", topic, "--acks", 0)
    assert ran.out == f"{topic}-0: 1 record sent without acknowledgement\n"


def test_an_unreachable_broker_is_reported_in_one_sentence() -> None:
    bootstrap = f"127.0.0.1:{free_port()}"
    for arguments in (
        ["topics", "list"],
        ["configs", "describe", "--broker", "1"],
        ["consume", "t"],
        ["produce", "t", "--file", "/dev/null"],
        ["offsets", "t"],
    ):
        ran = tailrace(*arguments, "--bootstrap", bootstrap)
        assert_one_sentence(ran, 2, bootstrap, "connection refused", "--bootstrap")
    assert_one_sentence(tailrace("topics", "list", "--bootstrap", "SASL_SSL://x:1"), 2, "SASL_SSL")
    assert_one_sentence(tailrace("topics", "list", "--bootstrap", "x:y"), 2, "'x:y' is not a bootstrap address")
