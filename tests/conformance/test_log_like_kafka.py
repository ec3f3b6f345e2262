"""The same calls to Kafka's log and to ours give the same results and the same files."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.log_oracle import LogOracle
from tests.support.twin_log import Script, TwinLog

pytestmark = pytest.mark.kafka

CONFIGS = {
    "defaults": {},
    "small segments": {"internal.segment.bytes": "4000", "index.interval.bytes": "300"},
    "log append time": {
        "message.timestamp.type": "LogAppendTime",
        "internal.segment.bytes": "6000",
        "index.interval.bytes": "100",
    },
    "rolled by time": {"segment.ms": "10000", "index.interval.bytes": "500", "retention.ms": "60000"},
    "kept by size": {
        "internal.segment.bytes": "3000",
        "retention.bytes": "9000",
        "file.delete.delay.ms": "1000",
        "index.interval.bytes": "0",
    },
    "tiny indexes": {"segment.index.bytes": "48", "index.interval.bytes": "200"},
    "flushed often": {"flush.messages": "20", "internal.segment.bytes": "5000"},
    "compacted": {"cleanup.policy": "compact", "internal.segment.bytes": "5000", "max.compaction.lag.ms": "30000"},
    "recompressed": {"compression.type": "gzip", "internal.segment.bytes": "8000"},
}


def run_script(log_oracle: LogOracle, tmp_path: Path, config: str, seed: int, steps: int) -> None:
    log_oracle.reset()
    twin = TwinLog(log_oracle, tmp_path, CONFIGS[config])
    Script(twin, seed).run(steps)
    twin.shut_down()
    twin.assert_same_files()


@pytest.mark.parametrize("config", CONFIGS)
@pytest.mark.parametrize("seed", range(3))
def test_random_calls_give_the_same_results_and_files(
    log_oracle: LogOracle, tmp_path: Path, config: str, seed: int
) -> None:
    run_script(log_oracle, tmp_path, config, seed, steps=120)


@pytest.mark.slow
@pytest.mark.parametrize("config", CONFIGS)
@pytest.mark.parametrize("seed", range(100, 140))
def test_more_random_calls_give_the_same_results_and_files(
    log_oracle: LogOracle, tmp_path: Path, config: str, seed: int
) -> None:
    run_script(log_oracle, tmp_path, config, seed, steps=400)
