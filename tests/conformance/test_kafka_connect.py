"""Kafka Connect, unchanged: file source and file sink, standalone and distributed, at Apache Kafka and at Tailrace."""

from __future__ import annotations

from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, TopicPartition

from tests.support.confluent import create_topic, produce
from tests.support.connect_worker import PATIENCE_S, ConnectWorker
from tests.support.tailrace_process import TailraceProcess

pytestmark = pytest.mark.slow

Config = dict[str, str]


def source_of(path: Path, topic: str) -> Config:
    return {"connector.class": "FileStreamSource", "tasks.max": "1", "file": str(path), "topic": topic}


def sink_to(path: Path, topic: str) -> Config:
    return {"connector.class": "FileStreamSink", "tasks.max": "1", "file": str(path), "topics": topic}


def lines(start: int, count: int) -> list[str]:
    return [f"line {n}" for n in range(start, start + count)]


def append(path: Path, written: list[str]) -> None:
    with path.open("a") as file:
        file.write("".join(f"{line}\n" for line in written))


def lines_of(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []


def wait_for_lines(worker: ConnectWorker, path: Path, expected: list[str]) -> None:
    worker.wait_until(lambda: len(lines_of(path)) >= len(expected), f"writing {len(expected)} lines to {path.name}")
    assert lines_of(path) == expected


def wait_for_all(worker: ConnectWorker, path: Path, expected: list[str]) -> None:
    """Wait until the sink has written every line at least once: it repeats lines after a crash."""
    worker.wait_until(lambda: set(lines_of(path)) >= set(expected), f"writing {len(expected)} lines to {path.name}")


def names_of(topic: str) -> tuple[str, str]:
    """Return the names of a source and a sink. A sink's consumer group is named after it, and tests share a broker."""
    return f"source-{topic}", f"sink-{topic}"


def group_settings(bootstrap: str, name: str, **more: str) -> Config:
    """Return the settings of distributed workers. The topics are named after the test, because tests share a broker."""
    settings = {"bootstrap.servers": bootstrap, "group.id": name}
    for kind in ("config", "offset", "status"):
        settings |= {f"{kind}.storage.topic": f"{name}-{kind}s", f"{kind}.storage.replication.factor": "1"}
    settings |= {"offset.storage.partitions": "3", "status.storage.partitions": "2"}
    return settings | {
        "offset.flush.interval.ms": "500",
        "session.timeout.ms": "6000",
        "heartbeat.interval.ms": "1000",
        "scheduled.rebalance.max.delay.ms": "1000",
        **more,
    }


def test_a_standalone_worker_copies_a_file_through_a_topic_and_resumes(
    bootstrap: str, topic: str, tmp_path: Path
) -> None:
    create_topic(bootstrap, topic)
    into, out = tmp_path / "in.txt", tmp_path / "out.txt"
    connectors = [
        {"name": f"{topic}-source", **source_of(into, topic)},
        {"name": f"{topic}-sink", **sink_to(out, topic)},
    ]
    settings = {"bootstrap.servers": bootstrap}
    append(into, lines(0, 100))
    with ConnectWorker.standalone(tmp_path, settings, connectors) as worker:
        wait_for_lines(worker, out, lines(0, 100))
    append(into, lines(100, 100))
    with ConnectWorker.standalone(tmp_path, settings, connectors) as worker:
        wait_for_lines(worker, out, lines(0, 200))
        append(into, lines(200, 50))
        wait_for_lines(worker, out, lines(0, 250))


def test_distributed_workers_take_over_from_a_killed_one_and_write_each_line_once(
    bootstrap: str, topic: str, tmp_path: Path
) -> None:
    create_topic(bootstrap, topic, 1)
    into, out = tmp_path / "in.txt", tmp_path / "out.txt"
    source, sink = names_of(topic)
    settings = group_settings(bootstrap, topic[:80], **{"exactly.once.source.support": "enabled"})
    append(into, lines(0, 100))
    with (
        ConnectWorker.distributed(tmp_path, "a", settings) as a,
        ConnectWorker.distributed(tmp_path, "b", settings) as b,
    ):
        a.wait_until_ready().put(f"/connectors/{source}/config", source_of(into, topic))
        b.wait_until_ready().put(f"/connectors/{sink}/config", sink_to(out, topic))
        wait_for_lines(a, out, lines(0, 100))
        (task,) = a.wait_until_running(source)
        dying, living = (a, b) if task["worker_id"] == a.url.removeprefix("http://") else (b, a)
        append(into, lines(100, 100))
        dying.kill()
        living.wait_until(lambda: has_run_of(living, source, dying), "running the dead worker's task")
        living.wait_until_running(sink)
        append(into, lines(200, 100))
        wait_for_all(living, out, lines(0, 300))
        assert committed_values(bootstrap, topic) == lines(0, 300)


def has_run_of(worker: ConnectWorker, connector: str, dead: ConnectWorker) -> bool:
    (task,) = worker.wait_until_running(connector)
    return bool(task["worker_id"] != dead.url.removeprefix("http://"))


def committed_values(bootstrap: str, topic: str) -> list[str]:
    settings = {"isolation.level": "read_committed", "enable.partition.eof": True, "enable.auto.commit": False}
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": f"{topic}-reader", **settings})
    consumer.assign([TopicPartition(topic, 0, 0)])
    found = []
    try:
        while True:
            message = consumer.poll(PATIENCE_S)
            assert message is not None
            if (error := message.error()) is not None:
                assert error.code() == KafkaError._PARTITION_EOF, error
                return found
            value = message.value()
            assert value is not None
            found.append(value.decode() if isinstance(value, bytes) else value)
    finally:
        consumer.close()


def test_offsets_of_connectors_are_read_altered_and_reset_over_rest(bootstrap: str, topic: str, tmp_path: Path) -> None:
    create_topic(bootstrap, topic)
    into, out = tmp_path / "in.txt", tmp_path / "out.txt"
    source, sink = names_of(topic)
    append(into, lines(0, 20))
    with ConnectWorker.distributed(tmp_path, "a", group_settings(bootstrap, topic[:80])) as worker:
        worker.wait_until_ready().put(f"/connectors/{source}/config", source_of(into, topic))
        worker.put(f"/connectors/{sink}/config", sink_to(out, topic))
        wait_for_lines(worker, out, lines(0, 20))

        partition = {"kafka_topic": topic, "kafka_partition": 0}
        at_the_end = {"offsets": [{"partition": partition, "offset": {"kafka_offset": 20}}]}
        worker.wait_until(lambda: worker.get(f"/connectors/{sink}/offsets") == at_the_end, "committing 20 lines")
        position = {"partition": {"filename": str(into)}, "offset": {"position": into.stat().st_size}}
        worker.wait_until(
            lambda: worker.get(f"/connectors/{source}/offsets") == {"offsets": [position]}, "saving its position"
        )

        stop(worker, sink)
        worker.patch(
            f"/connectors/{sink}/offsets", {"offsets": [{"partition": partition, "offset": {"kafka_offset": 15}}]}
        )
        worker.put(f"/connectors/{sink}/resume")
        wait_for_lines(worker, out, lines(0, 20) + lines(15, 5))

        stop(worker, sink)
        worker.delete(f"/connectors/{sink}/offsets")
        assert worker.get(f"/connectors/{sink}/offsets") == {"offsets": []}
        stop(worker, source)
        worker.delete(f"/connectors/{source}/offsets")
        worker.put(f"/connectors/{source}/resume")
        worker.put(f"/connectors/{sink}/resume")
        wait_for_lines(worker, out, lines(0, 20) + lines(15, 5) + lines(0, 20) + lines(0, 20))


def stop(worker: ConnectWorker, connector: str) -> None:
    worker.put(f"/connectors/{connector}/stop")
    worker.wait_for_state(connector, "STOPPED")


def test_records_that_a_sink_cannot_convert_go_to_its_dead_letter_queue(
    bootstrap: str, topic: str, tmp_path: Path
) -> None:
    create_topic(bootstrap, topic)
    produce(bootstrap, topic, 0, [b'{"n": 1}', b"not json", b'{"n": 2}'])
    out = tmp_path / "out.txt"
    sink = {
        **sink_to(out, topic),
        "value.converter": "org.apache.kafka.connect.json.JsonConverter",
        "value.converter.schemas.enable": "false",
        "errors.tolerance": "all",
        "errors.deadletterqueue.topic.name": f"{topic}-dead",
        "errors.deadletterqueue.topic.replication.factor": "1",
        "errors.deadletterqueue.context.headers.enable": "true",
        "transforms": "take",
        "transforms.take.type": "org.apache.kafka.connect.transforms.ExtractField$Value",
        "transforms.take.field": "n",
    }
    with ConnectWorker.distributed(tmp_path, "a", group_settings(bootstrap, topic[:80])) as worker:
        worker.wait_until_ready().put(f"/connectors/sink-{topic}/config", sink)
        wait_for_lines(worker, out, ["1", "2"])
    assert committed_values(bootstrap, f"{topic}-dead") == ["not json"]


def test_a_distributed_worker_continues_after_a_killed_broker(tmp_path: Path) -> None:
    into, out = tmp_path / "in.txt", tmp_path / "out.txt"
    source, sink = names_of("lines")
    with TailraceProcess(tmp_path / "data") as broker:
        create_topic(broker.bootstrap, "lines")
        settings = group_settings(broker.bootstrap, "workers", **{"exactly.once.source.support": "enabled"})
        with ConnectWorker.distributed(tmp_path, "a", settings) as worker:
            worker.wait_until_ready().put(f"/connectors/{source}/config", source_of(into, "lines"))
            worker.put(f"/connectors/{sink}/config", sink_to(out, "lines"))
            for start in range(0, 300, 100):
                append(into, lines(start, 100))
                wait_for_all(worker, out, lines(0, start + 100))
                broker.kill()
                broker.start()
            append(into, lines(300, 100))
            wait_for_all(worker, out, lines(0, 400))
            worker.wait_until_running(source)
        assert committed_values(broker.bootstrap, "lines") == lines(0, 400)
    assert broker.errors == ""
