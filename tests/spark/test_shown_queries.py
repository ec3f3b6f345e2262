"""`tailrace cluster queries` and the page Spark show a real stream, a sink and an export to a table."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import tailrace as tailrace_package
from tailrace.spark.jobs.place import Place
from tailrace.spark.source.group_commits import GroupCommits, ReaderNote, parse_note
from tailrace.spark.tables.follow import Follower, FollowPolicy
from tailrace.spark.tables.table_export import ExportSettings, TableExport
from tailrace.spark.tables.topic_source import TopicSource
from tests.support.browser import Browser, chromium
from tests.support.command import tailrace
from tests.support.console import Console
from tests.support.exported_tables import opened
from tests.support.filled_topics import numbered, put

PATIENCE_S = 300.0  # Spark starts several Python processes


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Any]:
    with tailrace_package.Broker(tmp_path / "data") as broker:
        broker.create_topic("in", partitions=2)
        broker.create_topic("out", partitions=1)
        put(broker.bootstrap, "in", 0, numbered(30))
        yield broker


def queries(broker: Any) -> dict[str, Any]:
    found: dict[str, Any] = tailrace("cluster", "queries", "--bootstrap", broker.bootstrap, "--json").json
    return found


def eventually(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.2)


def start_stream(spark: Any, broker: Any, folder: Path) -> Any:
    cluster = {"kafka.bootstrap.servers": broker.bootstrap}
    rows = (
        spark.readStream.format("tailrace")
        .options(**cluster, subscribe="in", startingOffsets="earliest", commitOffsetsToGroup="dashboard")
        .load()
    )
    return (
        rows.select("key", "value")
        .writeStream.format("tailrace")
        .options(**cluster, topic="out", checkpointLocation=str(folder / "checkpoint"))
        .start()
    )


@pytest.mark.slow
def test_a_stream_a_sink_and_an_export_are_shown_with_their_batches(spark: Any, broker: Any, tmp_path: Path) -> None:
    stopped = threading.Event()
    query = start_stream(spark, broker, tmp_path)
    with TopicSource(Place.parse(broker.bootstrap), ["in"]) as source:
        table = opened("delta", tmp_path / "lake")
        wire = Place.parse(broker.bootstrap).wire()
        assert wire is not None
        group = GroupCommits("lake", wire, table=table.name)
        follower = Follower(
            TableExport(spark, source, table, ExportSettings()), FollowPolicy(freshness_s=0.1), group=group
        )
        export = threading.Thread(target=follower.run, args=(stopped,), daemon=True)
        export.start()
        try:
            wait_for_batches(broker)
            eventually(lambda: queries(broker)["writes"][0]["finished"])
            check(broker, table.name)
        finally:
            query.stop()
            stopped.set()
            export.join(PATIENCE_S)
            group.close()


def wait_for_batches(broker: Any) -> None:
    """Write records until both readers have committed a second batch; a stream does so when the third begins."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        reads = queries(broker)["reads"]
        if len(reads) == 2 and all(one["batchOffsets"] for one in reads):
            return
        assert time.monotonic() < deadline, reads
        put(broker.bootstrap, "in", 1, numbered(12))
        time.sleep(1)


def check(broker: Any, table: str) -> None:
    found = queries(broker)
    stream, export = sorted(found["reads"], key=lambda one: str(one["group"]))
    assert (stream["group"], stream["kind"], stream["topics"]) == ("dashboard", "stream", ["in"])
    assert (export["group"], export["kind"], export["table"]) == ("lake", "table", table)
    for one in (stream, export):
        assert one["batch"] >= 2
        assert one["batchOffsets"] % 12 == one["lag"] % 12 == 0
    (write,) = found["writes"]
    assert (write["topic"], write["rows"] % 12, write["finished"]) == ("out", 0, True)
    with Console("--bootstrap", broker.bootstrap) as console:
        shown = console.get("cluster/queries").json
        assert [one["group"] for one in shown["reads"]] == [one["group"] for one in found["reads"]]
        assert shown["writes"][0]["transactionalId"] == write["transactionalId"]
        if chromium() is None:
            return
        with Browser(Path(broker.data).parent / "profile") as browser:
            browser.open(console.url + "#/spark")
            browser.wait_for("dashboard", f"table {table}", write["transactionalId"], "finished")
            rows = browser.execute(
                "return [...document.querySelectorAll('tbody tr')].map((one) => one.innerText.split(/\\s+/))"
            )
            assert [row[0] for row in rows][:2] == ["dashboard", "lake"]
            assert browser.errors() == []


def test_a_note_of_another_version_or_program_is_read_or_ignored() -> None:
    note = ReaderNote("lake.orders", 5, 3, 12)
    assert parse_note(note.text()) == note
    assert parse_note('{"tailrace": "stream", "table": null, "at": 7}') == ReaderNote(None, 7)
    for text in ("", "[]", "5", '{"tailrace": "other"}', '{"tailrace": "stream", "table": null, "at": "x"}'):
        assert parse_note(text) is None
