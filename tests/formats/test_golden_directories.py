"""The golden directories are complete, and Kafka still writes and reads them as in their manifests."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from scripts.make_golden_directories import expected, make_partition
from tests.support.golden import DIRECTORIES, golden, golden_names
from tests.support.golden_recorder import plain
from tests.support.kafka_broker import KafkaBroker
from tests.support.kafka_install import KafkaInstallation
from tests.support.log_oracle import LogOracle


def digests(directory: Path) -> dict[str, str]:
    files = sorted(path for path in directory.rglob("*") if path.is_file())
    return {str(path.relative_to(directory)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def test_there_are_golden_directories_of_both_kinds() -> None:
    assert len(golden_names("partition")) >= 20
    assert golden_names("data_dir") == ["broker-clean", "broker-crashed"]


def test_golden_directories_stay_small() -> None:
    sizes = {path: path.stat().st_size for path in DIRECTORIES.rglob("*") if path.is_file()}
    assert max(sizes.values()) < 100_000
    assert sum(sizes.values()) < 2_000_000


@pytest.mark.parametrize("name", golden_names())
def test_files_unpack_to_the_bytes_that_kafka_wrote(name: str, tmp_path: Path) -> None:
    directory = golden(name)
    for tree in ("files", "recovered"):
        assert digests(directory.unpack(tmp_path / tree, tree)) == directory.file_digests(tree)


@pytest.mark.kafka
@pytest.mark.parametrize("name", golden_names("partition"))
def test_kafka_makes_the_same_directory_again(name: str, log_oracle: LogOracle, tmp_path: Path) -> None:
    make_partition(log_oracle, name, tmp_path / name)
    assert json.loads((tmp_path / name / "manifest.json").read_text()) == golden(name).manifest
    kept = digests(DIRECTORIES / name)
    assert digests(tmp_path / name) == kept


@pytest.mark.kafka
@pytest.mark.parametrize(
    "name", [name for name in golden_names("partition") if golden(name).manifest["ended"] != "clean"]
)
def test_kafka_reads_the_same_records_from_a_recovered_directory(
    name: str, log_oracle: LogOracle, tmp_path: Path
) -> None:
    manifest = golden(name).manifest
    golden(name).unpack(tmp_path, "recovered")
    end = manifest["expected"]["state"]["log_end_offset"]
    settings = {**manifest["open"], "recovery_point": end, "clean_shutdown": True}
    log_oracle.now_ms = settings.pop("now_ms")
    found = expected(log_oracle, log_oracle.open(tmp_path / "topic-0", **settings))
    for part in ("batches", "times", "aborted", "stable_offset"):
        assert found[part] == manifest["expected"][part]
    assert found["state"]["leader_epochs"] == manifest["expected"]["state"]["leader_epochs"]


@pytest.mark.kafka
@pytest.mark.parametrize("name", golden_names("data_dir"))
def test_kafka_boots_on_the_directory_and_serves_what_the_manifest_says(
    name: str, kafka: KafkaInstallation, log_oracle: LogOracle, tmp_path: Path
) -> None:
    manifest = golden(name).manifest
    golden(name).unpack(tmp_path / "data")
    # The metadata log names the controller's port, but the broker asks the bootstrap servers.
    crashed = manifest["ended"] == "crashed"
    with KafkaBroker(kafka, tmp_path, after_crash=crashed) as broker, log_oracle.connect(broker.bootstrap) as client:
        for partition in manifest["partitions"]:
            records = client.consume(partition["topic"], partition["partition"])
            seen = [[r.offset, r.timestamp, r.key, r.value, r.headers] for r in records]
            assert plain(seen) == partition["records"]
            start, end = client.bounds(partition["topic"], partition["partition"])
            assert start == partition["start_offset"]
            assert end >= partition["end_offset"]  # the coordinator may have ended the open transaction
