"""kcat, the tool of librdkafka, at Apache Kafka and at Tailrace."""

from __future__ import annotations

import json

from tests.support.confluent import create_topic
from tests.support.foreign_clients import kcat

LINES = [f"key-{number}:value {number}" for number in range(100)]
CODECS = ("gzip", "snappy", "lz4", "zstd")
NOWHERE = "nowhere"


def test_kcat_reads_the_records_that_it_wrote(bootstrap: str, topic: str) -> None:
    create_topic(bootstrap, topic, 2)
    tool, there = kcat(), ("-b", bootstrap, "-t", topic)
    for codec in CODECS:
        settings = ("-X", "enable.idempotence=true", "-z", codec, "-H", f"codec={codec}")
        tool("-P", *there, "-p", "1", "-K:", *settings, stdin="\n".join(LINES) + "\n")
    read = tool("-C", *there, "-p", "1", "-o", "beginning", "-e", "-q", "-f", "%o %h %k:%s\n").splitlines()
    expected = [f"codec={codec} {line}" for codec in CODECS for line in LINES]
    assert read == [f"{offset} {line}" for offset, line in enumerate(expected)]

    last = tool("-C", *there, "-p", "1", "-o", "-2", "-e", "-q", "-f", "%o\n").split()
    assert last == ["398", "399"]
    assert tool("-C", *there, "-p", "0", "-o", "beginning", "-e", "-q") == ""


def test_kcat_looks_up_offsets_by_timestamp(bootstrap: str, topic: str) -> None:
    create_topic(bootstrap, topic)
    tool = kcat()
    tool("-P", "-b", bootstrap, "-t", topic, "-p", "0", stdin="\n".join(LINES) + "\n")
    times = tool("-C", "-b", bootstrap, "-t", topic, "-p", "0", "-o", "beginning", "-e", "-q", "-f", "%T\n").split()
    first = next(offset for offset, time in enumerate(times) if time == times[50])
    asked = {"-2": 0, "-1": 100, times[50]: first, str(int(times[-1]) + 1): -1}
    for time, offset in asked.items():
        assert tool("-Q", "-b", bootstrap, "-t", f"{topic}:0:{time}") == f"{topic} [0] offset {offset}\n"


def test_kcat_lists_the_cluster(bootstrap: str, topic: str) -> None:
    create_topic(bootstrap, topic, 2)
    listed = json.loads(kcat()("-L", "-J", "-b", bootstrap, "-t", topic))
    assert listed["brokers"] == [{"id": 1, "name": bootstrap}]
    assert listed["controllerid"] == 1
    here = [{"id": 1}]
    partitions = [{"partition": number, "leader": 1, "replicas": here, "isrs": here} for number in range(2)]
    assert listed["topics"] == [{"topic": topic, "partitions": partitions}]


def test_kcat_prints_the_errors_of_the_broker(bootstrap: str, topic: str) -> None:
    create_topic(bootstrap, topic, config={"max.message.bytes": "1000"})
    tool = kcat()
    unknown = tool.run("-C", "-b", bootstrap, "-t", f"{topic}-{NOWHERE}", "-p", "0", "-e")
    assert unknown.returncode == 1
    assert "Broker: Unknown topic or partition" in unknown.stderr
    missing = tool.run("-C", "-b", bootstrap, "-t", topic, "-p", "0", "-o", "77", "-e", "-X", "auto.offset.reset=error")
    assert missing.returncode == 1
    assert "Broker: Offset out of range" in missing.stderr
    large = tool.run("-P", "-b", bootstrap, "-t", topic, "-p", "0", stdin="x" * 2000 + "\n")
    assert "Message size too large" in large.stderr
