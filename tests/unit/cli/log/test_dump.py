"""`log dump` prints the same lines as kafka-dump-log for every file of a broker's directory."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.command import tailrace
from tests.support.golden import DIRECTORIES, golden, golden_names


def kafkas_dumps(name: str) -> list[str]:
    dumps = DIRECTORIES / name / "dumps"
    return sorted(str(path.relative_to(dumps)).removesuffix(".txt") for path in dumps.rglob("*.txt"))


@pytest.mark.long
@pytest.mark.parametrize("name", golden_names("data_dir"))
def test_dump_prints_the_lines_of_kafka_dump_log(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(golden(name).unpack(tmp_path))
    compared = 0
    for file in kafkas_dumps(name):
        expected = (DIRECTORIES / name / "dumps" / f"{file}.txt").read_text()
        ran = tailrace("log", "dump", file, "--print-data")
        assert (ran.status, ran.err) == (0, "")
        if not any(Path(file).read_bytes()) and file.endswith("index"):
            # kafka-dump-log prints the first eight or twelve bytes of the padding as an entry; `log dump` does not.
            assert ran.lines[1:] in ([], [f"{file} is empty."])
            continue
        assert ran.out == expected
        compared += 1
    assert compared > 30


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return golden("broker-clean").unpack(tmp_path_factory.mktemp("broker"))


def test_dump_as_json_has_every_kind_of_row(broker: Path) -> None:
    rows = tailrace("log", "dump", broker / "payments-0", "--print-data", "--json").json_lines
    assert {row["kind"] for row in rows} == {
        "batch",
        "record",
        "indexEntry",
        "timeIndexEntry",
        "abortedTransaction",
        "producer",
        "leaderEpoch",
        "property",
    }
    assert {Path(row["file"]).parent.name for row in rows} == {"payments-0"}
    first = next(row for row in rows if row["kind"] == "record")
    assert (first["offset"], first["key"], first["payload"]) == (0, "key-0", "value-0")


def test_dump_with_only_prints_the_named_kinds_of_files(broker: Path) -> None:
    rows = tailrace("log", "dump", broker, "--only", "txnindex", "--only", "snapshot", "--json").json_lines
    assert {Path(row["file"]).suffix for row in rows} == {".txnindex", ".snapshot"}
    rows = tailrace("log", "dump", broker, "--only", "checkpoint", "--json").json_lines
    assert {"meta.properties", "leader-epoch-checkpoint", "replication-offset-checkpoint"} <= {
        Path(row["file"]).name for row in rows
    }


def test_dump_with_records_omits_keys_and_values(broker: Path) -> None:
    lines = tailrace("log", "dump", broker / "payments-0", "--only", "log", "--records").lines
    assert lines[3].startswith("| offset: 0 CreateTime: ")
    assert "payload" not in lines[3]
    assert tailrace("log", "dump", broker / "payments-0", "--only", "log").lines[3].startswith("baseOffset: 3 ")


def test_dump_decodes_records_of_internal_topics(broker: Path) -> None:
    def payloads(topic: str) -> list[dict[str, object]]:
        arguments = ["--topic", topic, "--only", "log", "--print-data", "--json"]
        rows = tailrace("log", "dump", broker, *arguments).json_lines
        return [row["payload"] for row in rows if "payload" in row]

    assert payloads("__consumer_offsets")[0]["data"]["offset"] == 17  # type: ignore[index]
    assert payloads("__transaction_state")[0]["version"] == "1"
    assert {"TOPIC_RECORD", "PARTITION_RECORD"} <= {payload["type"] for payload in payloads("__cluster_metadata")}


def test_dump_reports_a_corrupt_file_and_prints_the_next(tmp_path: Path) -> None:
    path = golden("transactions").unpack(tmp_path) / "topic-0"
    min(path.glob("*.snapshot")).write_bytes(b"\x7f" * 60)
    ran = tailrace("log", "dump", path, "--only", "snapshot", "--json")
    assert ran.status == 1
    assert f"{min(path.glob('*.snapshot'))}: unknown version" in ran.err
    assert len({row["file"] for row in ran.json_lines}) == len(list(path.glob("*.snapshot"))) - 1


def test_dump_reports_invalid_bytes_at_the_end_as_kafka_does(tmp_path: Path) -> None:
    path = golden("crashed-torn-tail").unpack(tmp_path) / "topic-0"
    last = tailrace("log", "dump", max(path.glob("*.log"))).lines[-1]
    assert last.startswith("Found 220 invalid bytes at the end of 00000000000000000080.log")


def test_every_dump_line_with_json_is_a_json_object(broker: Path) -> None:
    for line in tailrace("log", "dump", broker, "--print-data", "--json").lines:
        assert isinstance(json.loads(line), dict)
