from __future__ import annotations

import re
from pathlib import Path

import pytest

from tailrace import Broker
from tests.support.command import tailrace, write_directory
from tests.support.golden import golden
from tests.support.our_workload import KINDS


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return golden("broker-clean").unpack(tmp_path_factory.mktemp("broker"))


def test_ls_prints_a_line_for_each_partition(broker: Path) -> None:
    ran = tailrace("log", "ls", broker)
    assert (ran.status, ran.err) == (0, "")
    assert "node 1 of cluster" in ran.lines[0]
    assert "stopped cleanly" in ran.lines[0]
    rows = {line.split()[0]: line.split() for line in ran.lines[3:] if line}
    assert rows["audit-0"][1:8] == ["1", "1.5", "KB", "22", "40", "40", "0"]
    assert rows["payments-0"][1] == "2"
    assert "10 partitions, 12 segments, 14.2 KB" in ran.lines


def test_ls_with_segments_prints_a_line_for_each_segment(broker: Path) -> None:
    ran = tailrace("log", "ls", broker, "--topic", "payments", "--segments")
    rows = [line.split() for line in ran.lines if line.startswith("payments-0")]
    assert [row[1:3] for row in rows] == [["0", "5"], ["5", "19"]]


def test_ls_as_json_has_segments_and_states(broker: Path) -> None:
    document = tailrace("log", "ls", broker, "--json").json
    assert document["stoppedCleanly"] is True
    facts = {partition["name"]: partition for partition in document["partitions"]}
    payments = facts["payments-0"]
    assert (payments["topic"], payments["partition"], payments["logEndOffset"]) == ("payments", 0, 19)
    assert [segment["baseOffset"] for segment in payments["segments"]] == [0, 5]
    assert payments["segments"][1]["abortedTransactions"] == 1
    assert [state for name, state in ((n, f["state"]) for n, f in facts.items()) if name.startswith("gone")] == [
        "deleted"
    ]


def test_ls_lists_only_the_named_topics_and_partitions(broker: Path) -> None:
    document = tailrace("log", "ls", broker, "--topic", "orders", "--topic", "audit", "--partition", "1", "--json").json
    assert [partition["name"] for partition in document["partitions"]] == ["orders-1"]


def test_ls_accepts_the_folder_of_one_partition(broker: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert [p["name"] for p in tailrace("log", "ls", broker / "audit-0", "--json").json["partitions"]] == ["audit-0"]
    monkeypatch.chdir(broker / "audit-0")
    assert [p["name"] for p in tailrace("log", "ls", ".", "--json").json["partitions"]] == ["audit-0"]


def test_ls_of_a_directory_without_partitions_has_status_0(tmp_path: Path) -> None:
    (tmp_path / "meta.properties").write_text(
        "version=1\ncluster.id=c\nnode.id=3\ndirectory.id=AAAAAAAAAAAAAAAAAAAAAw\n"
    )
    ran = tailrace("log", "ls", tmp_path)
    assert (ran.status, ran.lines[-1]) == (0, "no partitions yet")


def test_ls_lists_all_partitions_and_the_problems_below(tmp_path: Path) -> None:
    path = write_directory(tmp_path / "data")
    with open(max((path / "plain-0").glob("*.log")), "ab") as log:
        log.write(b"torn")
    (path / "log-start-offset-checkpoint").write_text("nonsense")
    ran = tailrace("log", "ls", path)
    assert ran.status == 0
    assert len([line for line in ran.lines if line.split("-0 ")[0] in KINDS]) == len(KINDS)
    assert "1 problem" in next(line for line in ran.lines if line.startswith("plain-0"))
    problems = ran.lines[ran.lines.index("Problems") :]
    assert any("log-start-offset-checkpoint: unknown version" in line for line in problems)
    assert any("the last 4 bytes are not a batch" in line for line in problems)


def test_ls_lists_the_other_partitions_if_one_is_unreadable(tmp_path: Path) -> None:
    path = write_directory(tmp_path / "data", "plain", "idempotent")
    log = max((path / "plain-0").glob("*.log"))
    log.unlink()
    log.mkdir()
    ran = tailrace("log", "ls", path)
    assert "Traceback" not in ran.err
    assert any(line.startswith("idempotent-0") for line in ran.lines)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the directory of a broker with empty partitions of __consumer_offsets."""
    directory = tmp_path_factory.mktemp("served") / "data"
    with Broker(data=str(directory), offsets_topic_num_partitions=12) as broker:
        broker.create_topic("empty")
        broker.create_topic("orders")
        reset = ("groups", "reset", "readers", "--topic", "orders", "--to-latest", "--yes")
        assert tailrace(*reset, "--bootstrap", broker.bootstrap).status == 0
    return directory


@pytest.mark.parametrize("verb", ["ls", "verify"])
def test_empty_partitions_of_internal_topics_share_one_line(served: Path, verb: str) -> None:
    ran = tailrace("log", verb, served)
    assert ran.status == 0
    names = [line.split()[0] for line in ran.lines if re.match(r"\S+-\d+ ", line)]
    assert names[0] == "__cluster_metadata-0"
    assert names[1].startswith("__consumer_offsets-")  # the one with the committed offset
    assert names[2:] == ["empty-0", "orders-0"]
    assert "and 11 empty partitions of __consumer_offsets (--topic lists them)" in ran.lines
    listed = tailrace("log", verb, served, "--topic", "__consumer_offsets").lines
    assert len([line for line in listed if line.startswith("__consumer_offsets-")]) == 12
    assert len(tailrace("log", verb, served, "--json").json["partitions"]) == 15
