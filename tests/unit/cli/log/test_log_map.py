"""`tailrace log map` and `log dump --from-byte`: segments, transactions, and what is removed next."""

from __future__ import annotations

from pathlib import Path

import pytest

import tailrace
from tests.support.command import tailrace as command

DAY_MS = 86_400_000


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a partition with several segments."""
    place = tmp_path_factory.mktemp("map")
    lines = place / "lines"
    lines.write_text("".join(f"k{n % 100}\tvalue {n:0100}\n" for n in range(20_000)))
    with tailrace.Broker(str(place / "data")) as broker:
        configs = ("--config", "segment.bytes=1048576", "--config", "retention.ms=3600000")
        for words in (
            ("topics", "create", "orders", *configs),
            ("produce", "orders", "--key-separator", "\\t", "--file", lines, "--batch-bytes", 5_000),
        ):
            ran = command(*words, "--bootstrap", broker.bootstrap)
            assert ran.status == 0, ran.err
    return place / "data" / "orders-0"


def test_the_map_has_the_segments_that_ls_has(folder: Path) -> None:
    mapped = command("log", "map", folder, "--json").json
    listed = command("log", "ls", folder, "--segments", "--json").json["partitions"][0]
    for name in ("baseOffset", "endOffset", "size", "hasSnapshot", "largestTimestamp"):
        assert [one[name] for one in mapped["segments"]] == [one[name] for one in listed["segments"]], name
    assert [one["indexEntries"] for one in mapped["segments"]] == [
        one["offsetIndexEntries"] for one in listed["segments"]
    ]
    assert mapped["logEndOffset"] == mapped["lastStableOffset"] == 20_000
    assert mapped["openTransactions"] == []


def test_retention_takes_segments_by_the_configs_of_the_topic(folder: Path) -> None:
    kept = command("log", "map", folder, "--json").json
    assert kept["retentionMs"] == 3_600_000  # from the metadata log of the directory
    assert [one["deletion"] for one in kept["segments"]] == [None] * len(kept["segments"])
    assert kept["segments"][0]["deletableFrom"] == kept["segments"][0]["largestTimestamp"] + 3_600_001
    size = sum(one["size"] for one in kept["segments"][1:])
    by_size = command("log", "map", folder, "--config", f"retention.bytes={size}", "--json").json["segments"]
    assert [one["deletion"] for one in by_size[:2]] == ["retention.bytes exceeded", None]
    by_age = command("log", "map", folder, "--config", "retention.ms=0", "--json").json["segments"]
    assert by_age[0]["deletion"] == "retention.ms passed"


def test_compaction_is_due_when_the_dirty_part_is_large(folder: Path) -> None:
    found = command("log", "map", folder, "--config", "cleanup.policy=compact", "--json").json
    compaction = found["compaction"]
    assert compaction["isDue"]
    assert compaction["firstDirtyOffset"] == 0
    assert compaction["firstUncleanableOffset"] == found["segments"][-1]["baseOffset"]
    assert compaction["cleanableBytes"] == sum(one["size"] for one in found["segments"][:-1])
    assert "compaction" in command("log", "map", folder, "--config", "cleanup.policy=compact").out


@pytest.mark.parametrize("setting", ["retention.ms", "no.such=1", "retention.ms=soon"])
def test_an_impossible_config_is_refused(folder: Path, setting: str) -> None:
    ran = command("log", "map", folder, "--config", setting)
    assert ran.status == 2
    assert "--config" in ran.err


@pytest.mark.parametrize("segment", [0, -1])
@pytest.mark.parametrize("share", [0.0, 0.3, 0.77, 1.0])
def test_a_dump_from_a_byte_starts_with_the_batch_that_contains_it(folder: Path, segment: int, share: float) -> None:
    chosen = command("log", "map", folder, "--json").json["segments"][segment]
    words = ("log", "dump", folder, "--only", "log", "--segment", chosen["baseOffset"], "--json")
    batches = command(*words).json_lines
    assert batches[0]["baseOffset"] == chosen["baseOffset"]
    byte = int((chosen["size"] - 1) * share)
    (first, *_) = command(*words, "--from-byte", byte).json_lines
    assert first["position"] <= byte < first["position"] + first["size"]
    assert first in batches
