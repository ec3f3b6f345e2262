"""Tools for transactions at Apache Kafka and at Tailrace: kafka-transactions prints the same, and so does our command.

DumpLogSegments reads our `__transaction_state`, and Kafka's producer performance tool commits transactions at Tailrace.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tailrace.protocol.messages import ProduceRequest
from tests.support.batches import batch
from tests.support.command import tailrace
from tests.support.confluent import create_topic
from tests.support.kafka_broker import KafkaBroker
from tests.support.kafka_install import KafkaInstallation
from tests.support.log_oracle import LogOracle
from tests.support.oracle_types import OracleRecord
from tests.support.raw_client import RawClient
from tests.support.tailrace_process import TailraceProcess

pytestmark = pytest.mark.kafka

DUMP = "org.apache.kafka.tools.DumpLogSegments"
TOOL = "org.apache.kafka.tools.TransactionsCommand"
HANGING = 4_000_000  # a producer id that no coordinator knows
UNVERIFIED = "transaction.partition.verification.enable=false"


class Pair:
    def __init__(self, oracle: LogOracle, kafka: KafkaBroker, ours: TailraceProcess) -> None:
        self.oracle = oracle
        self.brokers = (kafka, ours)

    def run(self, bootstrap: str, *arguments: str) -> str:
        line = ["--bootstrap-server", bootstrap, *arguments]
        status, text = self.oracle.call("tool", **{"class": TOOL, "arguments": line})
        assert status == 0, text
        return str(text)

    def same(self, *arguments: str, plain: Callable[[str], str] = lambda text: text) -> str:
        kafka, ours = (plain(self.run(broker.bootstrap, *arguments)) for broker in self.brokers)
        assert ours == kafka
        return ours


def without_ids(text: str) -> str:
    """Return the words of a table, without producer ids and times, which differ."""
    lines = [line.split() for line in text.splitlines() if line.strip()]
    reported = [[re.sub(r"^\d{4,}$", "N", word) for word in line] for line in lines]
    return "\n".join(" ".join(line) for line in sorted(reported))


@pytest.fixture(scope="module")
def pair(log_oracle: LogOracle, kafka: KafkaInstallation, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    ours = TailraceProcess(tmp_path_factory.mktemp("tools") / "data", "-o", UNVERIFIED)
    name, _, value = UNVERIFIED.partition("=")
    theirs = KafkaBroker(kafka, tmp_path_factory.mktemp("tools-kafka"), properties={name: value})
    with theirs, ours:
        for broker in (theirs, ours):
            create_topic(broker.bootstrap, "played", 2)
            with log_oracle.connect(broker.bootstrap) as java:
                for number in range(2000, 2003):  # so that ids are as large as times on both sides
                    java.transaction(f"id{number}", "played", 0, [record(number)], end="commit")
                java.transaction("aborts", "played", 0, [record(1)], end="abort")
                java.transaction("stays", "played", 1, [record(2)], end="open")
        yield Pair(log_oracle, theirs, ours)
        assert ours.stop() == 0
    assert ours.errors == ""


def record(number: int) -> OracleRecord:
    return OracleRecord(timestamp=1_700_000_000_000 + number, key=b"k", value=b"%d" % number)


def hang(bootstrap: str) -> None:
    """Open a transaction that no coordinator knows, a long time ago, as could happen with brokers before Kafka 3.6."""
    records = batch(b"lost", timestamp=1_000, producer_id=HANGING, sequence=0, transactional=True)
    topic = ProduceRequest.TopicProduceData(
        name="played", partition_data=[ProduceRequest.PartitionProduceData(index=0, records=records)]
    )
    with RawClient(bootstrap) as client:
        request = ProduceRequest(transactional_id="gone", acks=-1, timeout_ms=10_000, topic_data=[topic])
        (reported,) = client.ask(request, 9).responses[0].partition_responses
        assert reported.error_code == 0


def test_transactions_are_listed_the_same(pair: Pair) -> None:
    everything = pair.same("list", plain=without_ids)
    assert "stays 1 N Ongoing" in everything or re.search(r"stays 1 \d+ Ongoing", everything)
    for option in (
        ["--duration-filter", "0"],
        ["--duration-filter", "10000000"],
        ["--transactional-id-pattern", "id.*"],
    ):
        pair.same("list", *option, plain=without_ids)


def test_transactions_are_described_the_same(pair: Pair) -> None:
    def plain(text: str) -> str:
        return re.sub(r"\b\d{2,}\b", "N", " ".join(text.split()))

    for one in ("stays", "id2001", "aborts"):
        assert one in pair.same("describe", "--transactional-id", one, plain=plain)


def test_hanging_transactions_are_found_and_aborted_the_same(pair: Pair) -> None:
    for broker in pair.brokers:
        hang(broker.bootstrap)
    options = ("--broker-id", "1", "--max-transaction-timeout", "1")
    found = pair.same("find-hanging", *options, plain=_without_minutes)
    assert str(HANGING) in found
    for broker in pair.brokers:
        ours = tailrace("transactions", "find-hanging", "--bootstrap", broker.bootstrap, "--json")
        assert ours.status == 1
        (hanging,) = ours.json["hanging"]
        assert (hanging["producerId"], hanging["topic"], hanging["partition"]) == (HANGING, "played", 0)
    # One is aborted by Kafka's tool, the other by ours.
    kafka, broker = pair.brokers
    offset = str(hanging["startOffset"])
    pair.run(kafka.bootstrap, "abort", "--topic", "played", "--partition", "0", "--start-offset", offset)
    aborted = tailrace("transactions", "abort", "played-0", "--start-offset", offset, "--bootstrap", broker.bootstrap)
    assert (aborted.status, aborted.err) == (0, "")
    pair.same("find-hanging", *options, plain=_without_minutes)
    hang_again = tailrace(
        "transactions", "abort", "played-0", "--start-offset", offset, "--bootstrap", broker.bootstrap
    )
    assert hang_again.status == 1
    assert "open ones start at: none" in hang_again.err


def _without_minutes(text: str) -> str:
    return re.sub(r"\d{6,}(?=\s*$)", "N", text, flags=re.M)


def test_our_command_works_at_kafka_and_at_tailrace(pair: Pair) -> None:
    reported = []
    for broker in pair.brokers:
        listed = tailrace("transactions", "list", "--bootstrap", broker.bootstrap, "--json")
        assert (listed.status, listed.err) == (0, "")
        reported.append([(one["transactionalId"], one["state"]) for one in listed.json["transactions"]])
        one = tailrace("transactions", "describe", "stays", "--bootstrap", broker.bootstrap)
        assert "stays  ·  Ongoing" in one.out
        assert "played-1" in one.out
        assert tailrace("transactions", "describe", "nobody", "--bootstrap", broker.bootstrap).status == 2
        odd = tailrace("transactions", "list", "--state", "Odd", "--bootstrap", broker.bootstrap)
        assert (odd.status, "Odd" in odd.err) == (1, True)
    assert reported[0] == reported[1]


def test_dump_log_segments_reads_our_transaction_state(pair: Pair) -> None:
    _, ours = pair.brokers
    logs = [one / "00000000000000000000.log" for one in sorted(Path(ours.data).glob("__transaction_state-*"))]
    files = ",".join(str(path) for path in logs if path.stat().st_size)
    options = ["--files", files, "--print-data-log", "--deep-iteration", "--transaction-log-decoder"]
    status, text = pair.oracle.call("tool", **{"class": DUMP, "arguments": options})
    assert status == 0, text
    assert '"transactionalId":"stays"' in text
    for state in range(6):
        assert f'"transactionStatus":{state}' in text


def test_the_producer_performance_tool_commits_transactions(pair: Pair, kafka: KafkaInstallation) -> None:
    _, ours = pair.brokers
    printed = kafka.tool(
        "org.apache.kafka.tools.ProducerPerformance",
        *("--bootstrap-server", ours.bootstrap, "--topic", "played", "--num-records", "2000", "--record-size", "100"),
        *("--throughput", "-1", "--transactional-id", "perf", "--transaction-duration-ms", "50"),
    )
    assert "2000 records sent" in printed
    described = tailrace("transactions", "describe", "perf", "--bootstrap", ours.bootstrap, "--json")
    assert described.json["transactions"][0]["state"] == "CompleteCommit"
