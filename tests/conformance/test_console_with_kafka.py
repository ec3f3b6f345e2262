"""The console for an Apache Kafka broker: the same pages, and a sentence where a page needs a broker of Tailrace."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.browser import Browser, chromium
from tests.support.command import tailrace as command
from tests.support.console import Console, printed
from tests.support.kafka_broker import KafkaBroker

pytestmark = pytest.mark.kafka


@pytest.fixture
def kafka(kafka_broker: Callable[..., KafkaBroker], tmp_path: Path) -> Iterator[KafkaBroker]:
    with kafka_broker() as broker:
        lines = tmp_path / "lines"
        lines.write_text("".join(f"order {n}\n" for n in range(100)))
        for words in (
            ("topics", "create", "orders", "--partitions", 2),
            ("produce", "orders", "--file", lines, "--partition", 1),
            ("consume", "orders", "--group", "kitchen", "--from", "beginning", "--max", 10, "--values"),
        ):
            ran = command(*words, "--bootstrap", broker.bootstrap)
            assert ran.status == 0, ran.err
        yield broker


PAGES = {
    "#/": ["Healthy", "Controllers"],
    "#/topics": ["orders", "100"],
    "#/topics/orders?tab=records&from=90&max=2&partition=1": ["order 90", "order 91"],
    "#/topics/orders?tab=configs": ["retention.ms", "default"],
    "#/groups/kitchen": ["Committed", "90"],
    "#/transactions": ["no producer has used a transaction"],
    "#/security": ["No authorizer is configured"],
    "#/log/orders/1": ["This console sees no data directory"],
    "#/groups": ["kitchen", "Lag in time"],
    "#/replicas/orders": ["All replicas are in sync", "high watermark 100"],
    "#/spark": ["No stream has the option commitOffsetsToGroup"],
    "#/waiting": ["needs the metrics of a Tailrace broker"],
}


def test_the_pages_show_a_kafka_broker(kafka: KafkaBroker, tmp_path: Path) -> None:
    with Console("--bootstrap", kafka.bootstrap) as console:
        for path, *words in (
            ("topics/list", "topics", "list"),
            ("groups/lag", "groups", "lag"),
            ("offsets", "offsets"),
        ):
            assert console.get(path).text == printed(kafka.bootstrap, *words), path
        if chromium() is None:
            return
        with Browser(tmp_path / "profile") as browser:
            for place, texts in PAGES.items():
                browser.open(console.url + place)
                browser.wait_for(*texts)
                assert browser.errors() == [], place
