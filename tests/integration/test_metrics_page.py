"""docs/reference/metrics.md names what a broker tells, and a broker tells what it names."""

from __future__ import annotations

import re
import urllib.request
from pathlib import Path

import tailrace
from tailrace.client.cluster.cluster_client import ClusterClient

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "metrics.md"
_NAME = re.compile(r"`((?:…|kafka|tailrace|process|python)_\w+)")
# Told only once something has happened.
_LATER = {"kafka_log_logcleanermanager_time_since_last_run_ms"}


def named() -> set[str]:
    """Names in the table; one that begins with … is told of by its ending alone."""
    rows = [line for line in PAGE.read_text().splitlines() if line.startswith("| `")]
    return {name for row in rows for name in _NAME.findall(row)}


def test_the_page_and_the_broker_agree(tmp_path: Path) -> None:
    settings = {"tailrace.metrics.port": 0, "tailrace.telemetry.enable": True}
    with tailrace.Broker(tmp_path / "data", config=settings) as broker:
        broker.create_topic("orders")
        with ClusterClient(broker.bootstrap) as client:
            client.topics()
        with urllib.request.urlopen(broker.metrics, timeout=30) as answer:
            text = answer.read().decode()
    told = set(re.findall(r"^# TYPE (\w+)", text, re.MULTILINE))
    names = named()
    whole = {name for name in names if not name.startswith("…")}
    endings = tuple(name.removeprefix("…") for name in names if name.startswith("…"))
    assert whole - told - _LATER == set()
    assert {name for name in told - whole if not name.endswith(endings)} == set()
    assert {ending for ending in endings if not any(name.endswith(ending) for name in told | _LATER)} == set()
