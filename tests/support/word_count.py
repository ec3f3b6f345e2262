"""WordCount: Kafka Streams' word count as processes, and the check that every word was counted exactly once.

    application = WordCount(broker.bootstrap, tmp_path, "words", "counts", {"group.protocol": "streams"})
    with application.instance("a"), application.instance("b"):
        …

An instance is a JVM with its own state directory. It runs until its `with` block ends, or is killed.
"""

from __future__ import annotations

import os
import queue
import subprocess
import threading
import time
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from confluent_kafka import Consumer, Producer, TopicPartition

from tests.support.cache import Unavailable, digest_of_files, make_once
from tests.support.foreign_clients import SOURCES, Program, java_program, maven_jars, remembered
from tests.support.kafka_install import kafka_installation, kafka_version

PATIENCE_S = 180.0
_SOURCE = SOURCES / "java" / "WordCount.java"


@remembered
def word_count_program() -> Program:
    jars = maven_jars(f"org.apache.kafka:kafka-streams:{kafka_version()}", "org.slf4j:slf4j-simple:1.7.36")
    compiler = kafka_installation().java.compiler
    if compiler is None:
        raise Unavailable("a JDK is needed for Kafka Streams' word count")

    def build(directory: Path) -> None:
        path = os.pathsep.join(map(str, jars))
        command = [str(compiler), "--release", "17", "-nowarn", "-cp", path, "-d", str(directory), str(_SOURCE)]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr

    classes = make_once(jars[0].parents[1] / f"word-count-{digest_of_files([_SOURCE])}-{kafka_version()}", build)
    program = java_program([*jars, classes], "WordCount")
    java, *rest = program.command
    return Program((java, "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", *rest), program.environment)


class WordCount:
    def __init__(
        self, bootstrap: str, directory: Path, source: str, sink: str, settings: Mapping[str, str] | None = None
    ) -> None:
        self.bootstrap = bootstrap
        self.directory = directory
        self.source, self.sink = source, sink
        self.settings = {
            "application.id": "word-count",
            "bootstrap.servers": bootstrap,
            "processing.guarantee": "exactly_once_v2",
            "auto.offset.reset": "earliest",
            "reconnect.backoff.max.ms": "200",
            **(settings or {}),
        }

    def instance(self, name: str, settings: Mapping[str, str] | None = None) -> Instance:
        more = {"state.dir": str(self.directory / f"state-{name}"), "client.id": name, **(settings or {})}
        words = [f"{key}={value}" for key, value in {**self.settings, **more}.items()]
        return Instance(name, [*word_count_program().command, self.source, self.sink, *words], self.directory)

    def counts(self, partitions: int) -> dict[str, list[int]]:
        """Return each word's counts in write order, as a read_committed consumer sees them."""
        consumer = Consumer(
            {
                "bootstrap.servers": self.bootstrap,
                "group.id": "reader",
                "isolation.level": "read_committed",
                "enable.partition.eof": True,
                "enable.auto.commit": False,
            }
        )
        found: dict[str, list[int]] = defaultdict(list)
        try:
            consumer.assign([TopicPartition(self.sink, number, 0) for number in range(partitions)])
            ends = 0
            while ends < partitions:
                message = consumer.poll(PATIENCE_S)
                assert message is not None
                if message.error() is not None:
                    ends += 1
                    continue
                key, value = message.key(), message.value()
                assert key is not None
                assert value is not None
                found[key.decode() if isinstance(key, bytes) else key].append(int(value))
        finally:
            consumer.close()
        return found

    def wait_for(self, expected: Mapping[str, int], partitions: int) -> None:
        """Wait until every word has been counted as often as it was written. Then check that no word was
        counted twice.
        """
        deadline = time.monotonic() + PATIENCE_S
        while True:
            found = self.counts(partitions)
            if all(len(found[word]) >= count for word, count in expected.items()):
                break
            assert time.monotonic() < deadline, {word: (len(found[word]), count) for word, count in expected.items()}
            time.sleep(0.5)
        assert found == {word: list(range(1, count + 1)) for word, count in expected.items()}


class Instance:
    def __init__(self, name: str, command: list[str], directory: Path) -> None:
        self.name = name
        self._log = directory / f"{name}.log"
        self._lines: queue.Queue[str] = queue.Queue()
        with self._log.open("ab") as log:
            self.process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True
            )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._lines.put(line.strip())

    def wait_for(self, state: str) -> Self:
        """Wait until the instance reports a state: RUNNING, REBALANCING, …"""
        deadline = time.monotonic() + PATIENCE_S
        seen = []
        while not seen or seen[-1] != f"state {state}":
            try:
                seen.append(self._lines.get(timeout=max(deadline - time.monotonic(), 0.01)))
            except queue.Empty:
                raise AssertionError(f"{self.name} is not {state}, only {seen}:\n{self.log_tail()}") from None
        return self

    def log_tail(self) -> str:
        return self._log.read_text()[-4_000:]

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def stop(self) -> None:
        """Stop cleanly: the instance commits and leaves its group."""
        if self.process.poll() is None:
            assert self.process.stdin is not None
            self.process.stdin.close()
            try:
                self.process.wait(PATIENCE_S)
            except subprocess.TimeoutExpired:
                self.kill()
                raise AssertionError(f"{self.name} did not end:\n{self.log_tail()}") from None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if kind is None:
            self.stop()
        else:
            self.kill()


def write_lines(bootstrap: str, topic: str, lines: list[str]) -> dict[str, int]:
    """Write lines, also across broken connections, and return how often each word is in them."""
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "enable.idempotence": True,
            "message.timeout.ms": int(PATIENCE_S * 1000),
            "reconnect.backoff.max.ms": 200,
            "linger.ms": 5,
            "log_level": 0,
        }
    )
    expected: dict[str, int] = defaultdict(int)
    for number, line in enumerate(lines):
        producer.produce(topic, line.encode(), key=b"%d" % number)
        for word in line.split():
            expected[word] += 1
        producer.poll(0)
    assert producer.flush(PATIENCE_S) == 0
    return expected
