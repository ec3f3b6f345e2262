"""Write the golden directories of tests/formats/data/directories again with Apache Kafka.

    python -m scripts.make_golden_directories [NAME ...]     all, or those named

Partition directories are the same every time, because the script sets the oracle's clock. The directories of a whole
broker (`broker-clean`, `broker-crashed`) differ in ids and times.
"""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
from pathlib import Path
from typing import Any

from tests.support import golden_broker, golden_crashes  # noqa: F401  crashes add their scenarios
from tests.support.golden import DIRECTORIES, pack
from tests.support.golden_recorder import Recorder, plain
from tests.support.golden_scenarios import SCENARIOS
from tests.support.kafka_install import kafka_installation, kafka_version
from tests.support.log_oracle import START_MS, LogOracle
from tests.support.oracle_log import EARLIEST, LATEST, MAX_TIMESTAMP, OracleLog
from tests.support.oracle_types import OracleRecord


def main() -> None:
    parser = argparse.ArgumentParser(description="Write the golden directories again with Apache Kafka.")
    known = [*SCENARIOS, *golden_broker.NAMES]
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"one of: {', '.join(known)}")
    names = parser.parse_args().names or known
    installation = kafka_installation()
    with LogOracle(installation) as oracle:
        for name in names:
            target = DIRECTORIES / name
            shutil.rmtree(target, ignore_errors=True)
            target.mkdir(parents=True)
            if name in SCENARIOS:
                make_partition(oracle, name, target)
            else:
                write(target, golden_broker.make_broker_directory(installation, oracle, name, target))
            print(name)


def make_partition(oracle: LogOracle, name: str, target: Path) -> None:
    """Run one scenario and put its directory and manifest into target."""
    scenario = SCENARIOS[name]
    with tempfile.TemporaryDirectory() as scratch:
        files = Path(scratch) / "files"
        oracle.reset(START_MS)
        recorder = Recorder(oracle, files / "topic-0")
        scenario(recorder)
        assert recorder.final is not None
        manifest: dict[str, Any] = {
            "kind": "partition",
            "about": " ".join((scenario.__doc__ or "").split()),
            "kafka": kafka_version(),
            "ended": recorder.ended,
            "changes": recorder.changes,
            "open": {
                "config": recorder.config,
                "recovery_point": recorder.final.log_end_offset
                if recorder.ended == "clean"
                else recorder.final.recovery_point,
                "log_start_offset": recorder.final.log_start_offset,
                "clean_shutdown": recorder.ended == "clean",
                "now_ms": oracle.now_ms,
            },
        }
        pack(files, target, "files", manifest)
        recovered = Path(scratch) / "recovered"
        shutil.copytree(files, recovered)
        settings = {key: value for key, value in manifest["open"].items() if key != "now_ms"}
        log = oracle.open(recovered / "topic-0", **settings)
        manifest["expected"] = expected(oracle, log)
        if recorder.ended != "clean":
            log.shut_down()
            pack(recovered, target, "recovered", manifest)
        manifest["steps"] = recorder.steps
    write(target, manifest)


def expected(oracle: LogOracle, log: OracleLog) -> dict[str, Any]:
    """Return the values that Kafka reads from a log that it has just opened."""
    result: dict[str, Any] = {
        "state": plain(log.state()),
        "segments": [plain(segment) for segment in log.segments()],
        "producers": plain(log.producers()),
    }
    for segment in result["segments"]:
        del segment["last_modified"]  # the file's date, by the real clock
    state = log.state()
    log.set_high_watermark(state.log_end_offset)
    result["stable_offset"] = log.state().last_stable_offset
    result["aborted"] = [
        plain(entry) for entry in log.aborted_transactions(state.log_start_offset, state.log_end_offset)
    ]
    batches = []
    offset = state.log_start_offset
    while offset < state.log_end_offset:
        read = oracle.decode(log.read(offset).records)
        if not read:
            break
        batches += read
        offset = read[-1].next_offset
    result["batches"] = [
        {**plain(batch), "records": [_record(record) for record in batch.records]} for batch in batches
    ]
    times = {record.timestamp for batch in batches for record in batch.records if record.timestamp >= 0}
    asked = [*sorted({near for time in times for near in (time - 1, time, time + 1)}), EARLIEST, LATEST, MAX_TIMESTAMP]
    found = log.offsets_by_timestamp(asked)
    result["times"] = [
        [time, None if answer is None else [answer.timestamp, answer.offset, answer.leader_epoch]]
        for time, answer in zip(asked, found, strict=True)
    ]
    return result


def _record(record: OracleRecord) -> list[Any]:
    """Return offset, timestamp, key, value and headers."""
    fields: list[Any] = plain([record.offset, record.timestamp, record.key, record.value, record.headers])
    return fields


def write(target: Path, manifest: dict[str, Any]) -> None:
    """Write the manifest with one line for each step, batch and time."""
    lines = []
    for key, value in manifest.items():
        lines.append(f"{json.dumps(key)}: {_spread(value, 2 if key == 'expected' else 1)}")
    (target / "manifest.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")


def _spread(value: Any, depth: int) -> str:
    if depth and value and isinstance(value, dict):
        inner = ",\n".join(f"{json.dumps(key)}: {_spread(item, depth - 1)}" for key, item in value.items())
        return "{\n" + inner + "\n}"
    if depth and value and isinstance(value, list):
        return "[\n" + ",\n".join(_spread(item, 0) for item in value) + "\n]"
    return json.dumps(value, separators=(",", ":"))


if __name__ == "__main__":
    main()
