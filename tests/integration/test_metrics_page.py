"""docs/reference/metrics.md names every metric of a broker, and no other."""

from __future__ import annotations

import json
import re
import urllib.request
from pathlib import Path

import tailrace
from tailrace.client.cluster.cluster_client import ClusterClient

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "metrics.md"
DASHBOARD = Path(__file__).parents[2] / "monitoring" / "grafana-dashboard.json"
_NAME = re.compile(r"`((?:…|kafka|org|tailrace|process|python)_\w+)")
# Exposed only after the first event.
_LATER = {"kafka_log_logcleanermanager_time_since_last_run_ms"}


def named() -> set[str]:
    """Return the names in the table. A name that begins with … stands for every name with that ending."""
    rows = [line for line in PAGE.read_text().splitlines() if line.startswith("| `")]
    return {name for row in rows for name in _NAME.findall(row)}


def test_the_page_and_the_broker_name_the_same_metrics(tmp_path: Path) -> None:
    settings = {
        "tailrace.metrics.port": 0,
        "tailrace.telemetry.enable": True,
        "remote.log.storage.system.enable": True,
        "remote.log.storage.manager.class.name": "org.apache.kafka.server.log.remote.storage.LocalTieredStorage",
        "rsm.config.dir": str(tmp_path),
    }
    with tailrace.Broker(tmp_path / "data", config=settings) as broker:
        broker.create_topic("orders")
        with ClusterClient(broker.bootstrap) as client:
            client.topics()
        with urllib.request.urlopen(broker.metrics, timeout=30) as answer:
            text = answer.read().decode()
    reported = set(re.findall(r"^# TYPE (\w+)", text, re.MULTILINE))
    names = named()
    whole = {name for name in names if not name.startswith("…")}
    endings = tuple(name.removeprefix("…") for name in names if name.startswith("…"))
    assert whole - reported - _LATER == set()
    assert {name for name in reported - whole if not name.endswith(endings)} == set()
    assert {ending for ending in endings if not any(name.endswith(ending) for name in reported | _LATER)} == set()


def test_every_metric_and_label_of_the_dashboard_exists() -> None:
    dashboard = json.loads(DASHBOARD.read_text())
    queries = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    queries += [one["query"]["query"] for one in dashboard["templating"]["list"] if one["type"] == "query"]
    with tailrace.Broker(config={"tailrace.metrics.port": 0}) as broker:
        broker.create_topic("orders")
        with ClusterClient(broker.bootstrap) as client:
            client.topics()
        with urllib.request.urlopen(broker.metrics, timeout=30) as answer:
            text = answer.read().decode()
    samples: dict[str, set[str]] = {}
    for name, labels in re.findall(r"^(\w+)(?:\{(.*)\})? \S+$", text, re.MULTILINE):
        samples.setdefault(name, set()).update(re.findall(r'(\w+)="', labels))
    types = set(re.findall(r"^# TYPE (\w+)", text, re.MULTILINE))
    assert len(queries) > 20
    for query in queries:
        names = set(re.findall(r"\b(?:kafka|tailrace|process|python)_\w+", query))
        assert names, query
        for name in names:
            assert name.removesuffix("_bucket") in types, query
            used = {label for labels in re.findall(r"by \(([^)]*)\)", query) for label in labels.split(", ")}
            assert used - {"instance", "job"} <= samples.get(name, used), (query, samples.get(name))
