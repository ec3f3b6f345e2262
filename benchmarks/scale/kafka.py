"""The same metadata at Apache Kafka: the CPU time and memory of a Kafka broker and a Tailrace broker.

A real controller is started on a world's log, and one broker of each kind joins it; for a world of few partitions and
one of many.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.kafka import cpu_seconds
from benchmarks.scale.world import CLUSTER_ID
from tailrace.metadata.storage.storage_format import METADATA_FOLDER
from tests.support import kafka_broker
from tests.support.kafka_controllers import KafkaControllers
from tests.support.kafka_install import kafka_installation
from tests.support.kafka_member import KafkaMember
from tests.support.kraft_broker import kraft_broker

COPIED = ("00000000000000000000.log", "leader-epoch-checkpoint", "partition.metadata")
PATIENCE = {"broker.session.timeout.ms": "3600000"}  # the thousand brokers of the world send no heartbeats


def below_controllers(directory: str) -> dict[str, float]:
    kafka_broker.START_TIMEOUT_S = 300.0
    with tempfile.TemporaryDirectory(prefix="tailrace-scale-") as work:
        controllers = KafkaControllers(kafka_installation(), Path(work), properties=PATIENCE, is_formatted_here=True)
        node = controllers.nodes[0]
        controllers.cluster_id = node._cluster_id = CLUSTER_ID
        node.heap = "3g"
        node._format(Path(work))
        folder = node.data / METADATA_FOLDER
        for name in COPIED:
            shutil.copy(Path(directory) / "log" / METADATA_FOLDER / name, folder)
        with controllers:
            theirs = KafkaMember(controllers, Path(work) / "kafka", 2001)
            theirs.heap = "3g"
            theirs.start()
            ours = kraft_broker(controllers, Path(work) / "tailrace", 2002)
            ours.ready_timeout_s = 300
            try:
                with ours:
                    assert ours.process is not None
                    time.sleep(2)
                    return {
                        "controller_cpu_s": cpu_seconds(node.pid),
                        "controller_heap_mb": _heap_mb(node.pid),
                        "kafka_cpu_s": cpu_seconds(theirs.pid),
                        "kafka_heap_mb": _heap_mb(theirs.pid),
                        "kafka_rss_mb": _status_mb(theirs.pid, "VmRSS"),
                        "ours_cpu_s": cpu_seconds(ours.process.pid),
                        "ours_rss_mb": _status_mb(ours.process.pid, "VmRSS"),
                        "ours_peak_mb": _status_mb(ours.process.pid, "VmHWM"),
                    }
            finally:
                theirs._kill()


def _heap_mb(pid: int) -> float:
    """Return the used heap of a JVM after a collection."""
    jcmd: Any = kafka_installation().java.executable.resolve().with_name("jcmd")
    subprocess.run([jcmd, str(pid), "GC.run"], check=True, capture_output=True)
    reported = subprocess.run([jcmd, str(pid), "GC.heap_info"], check=True, capture_output=True, text=True).stdout
    return sum(map(int, re.findall(r"(?:heap|generation)\s+total \d+K, used (\d+)K", reported))) / 1024


def _status_mb(pid: int, name: str) -> float:
    found = re.search(rf"{name}:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    assert found is not None
    return int(found[1]) / 1024
