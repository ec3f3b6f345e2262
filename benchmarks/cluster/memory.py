"""Memory of the brokers, before any load and after all parts."""

from __future__ import annotations

from pathlib import Path

from benchmarks.broker.comparison import Comparison
from benchmarks.cluster.clusters import BROKERS, Cluster
from benchmarks.cluster.samples import Samples

TITLE = "Cluster: memory"
TEXT = (
    "Memory of one broker, the mean of three, with all processes that it has started: its share of resident memory "
    "(PSS), and the peak of resident memory (RSS). Idle is after the start, loaded is after the other parts."
)


def note_idle(cluster: Cluster, samples: Samples) -> None:
    samples.add("idle", cluster.kind, _mean(cluster, "smaps_rollup", "Pss"))


def measure(cluster: Cluster, samples: Samples, *, quick: bool) -> None:
    samples.add("loaded", cluster.kind, _mean(cluster, "smaps_rollup", "Pss"))
    samples.add("peak", cluster.kind, _mean(cluster, "status", "VmHWM"))


def _mean(cluster: Cluster, file: str, what: str) -> float:
    sizes = [sum(_mb(pid, file, what) for pid in cluster.pids(one)) for one in BROKERS]
    return sum(sizes) / len(sizes)


def _mb(pid: int, file: str, what: str) -> float:
    for line in Path(f"/proc/{pid}/{file}").read_text().splitlines():
        if line.startswith(f"{what}:"):
            return int(line.split()[1]) / 1024
    raise ValueError(f"no {what} of process {pid}")


def rows(samples: Samples) -> list[Comparison]:
    return [
        samples.row("idle", lambda mb: f"{mb:.0f} MB", at_most=0.15, title="PSS, idle"),
        samples.row("loaded", lambda mb: f"{mb:.0f} MB", at_most=0.15, title="PSS, loaded"),
        samples.row("peak", lambda mb: f"{mb:.0f} MB", at_most=0.15, title="RSS, at its peak"),
    ]
