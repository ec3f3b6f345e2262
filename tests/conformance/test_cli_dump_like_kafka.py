"""`tailrace log dump` prints the same as Kafka's DumpLogSegments, for files of every kind from Kafka and from us."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.command import tailrace, write_directory
from tests.support.golden import golden, golden_names
from tests.support.log_oracle import LogOracle

pytestmark = pytest.mark.kafka

DUMPED = (".log", ".index", ".timeindex", ".txnindex", ".snapshot")
# Kafka's tool fails on a length of zero, where ours prints the rest of the file.
NOT_FOR_KAFKA = {"crashed-zero-tail", "crashed-preallocated"}


def assert_same_lines(oracle: LogOracle, folder: Path, options: tuple[str, ...], ours: tuple[str, ...]) -> int:
    compared = 0
    for file in sorted(folder.iterdir()):
        if file.suffix not in DUMPED or (file.suffix in (".index", ".timeindex") and not any(file.read_bytes())):
            continue  # padding only: Kafka's tool takes it for an entry
        if file.suffix in (".index", ".timeindex") and not file.with_suffix(".log").exists():
            continue
        expected = oracle.dump(file, options=options).splitlines()
        ran = tailrace("log", "dump", file, *ours)
        assert ran.status == 0
        # Kafka prints gaps in offsets after the dump; here `verify` reports them.
        reported = [
            line for line in expected if not line.startswith(("Non-consecutive", "  ", "Mismatches", "Found time"))
        ]
        shown = [line.partition(" (")[0] if line.startswith("Found ") else line for line in ran.lines]
        assert shown == reported
        compared += 1
    return compared


@pytest.mark.parametrize("name", [name for name in golden_names("partition") if name not in NOT_FOR_KAFKA])
def test_files_of_kafka_are_dumped_as_by_kafka(name: str, log_oracle: LogOracle, tmp_path: Path) -> None:
    folder = golden(name).unpack(tmp_path) / "topic-0"
    if name == "crashed-without-indexes":
        for index in ("index", "timeindex"):
            assert not list(folder.glob(f"*.{index}"))
    assert assert_same_lines(log_oracle, folder, ("--print-data-log", "--deep-iteration"), ("--print-data",))


@pytest.mark.slow
def test_files_of_tailrace_are_dumped_as_by_kafka(log_oracle: LogOracle, tmp_path: Path) -> None:
    directory = write_directory(tmp_path / "data")
    for folder in sorted(path for path in directory.iterdir() if path.is_dir()):
        assert assert_same_lines(log_oracle, folder, ("--deep-iteration",), ("--records",)) > 5
        assert assert_same_lines(log_oracle, folder, (), ()) > 5
