"""Diff, replay and profile inside Spark. Their results are tested without Spark in tests/unit/spark/jobs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import tailrace
from tailrace.model.ids import TopicPartition
from tailrace.spark.jobs.diff.diff import diff
from tailrace.spark.jobs.errors import JobError
from tailrace.spark.jobs.profile.profile import profile
from tailrace.spark.jobs.replay.replay import replay
from tests.support.filled_topics import numbered, put


def command(*arguments: object) -> subprocess.CompletedProcess[str]:
    """Run a command in another process, because a command stops its Spark session."""
    words = [sys.executable, "-m", "tailrace", "job", *map(str, arguments), "--master", "local[1]"]
    return subprocess.run(words, capture_output=True, text=True, timeout=300, check=False)


def test_a_replayed_topic_has_no_diff_and_the_same_profile(spark: Any, tmp_path: Path) -> None:
    with tailrace.Broker(tmp_path / "here") as here, tailrace.Broker(tmp_path / "there") as there:
        here.create_topic("t", partitions=2)
        put(here.bootstrap, "t", 0, numbered(300))
        put(here.bootstrap, "t", 1, [*numbered(20), (b"key 3", None)])
        done = replay(
            spark, here.data, there.bootstrap, topics=["t"], create=True, state=str(tmp_path / "state"), rate=100_000
        )
        assert sorted(one.records for one in done.partitions) == [21, 300]
        assert diff(spark, here.bootstrap, there.data, topics=["t"]).is_equal
        (one,) = profile(spark, here.data).topics
        (other,) = profile(spark, there.bootstrap).topics
        assert one.to_json()["keys"] == other.to_json()["keys"]
        assert one.keys is not None
        assert (one.facts.records, one.keys.superseded, one.keys.tombstones_last) == (321, 1, 1)
        put(there.bootstrap, "t", 1, numbered(1))
        found = diff(spark, here.data, there.bootstrap, topics=["t"])
        assert found.partitions[TopicPartition("t", 1)].there.spans == [(21, 21, 1)]
        put(here.bootstrap, "t", 1, numbered(5, first=9))
        here.restart()  # in its files, records are committed up to the last checkpoint of the high watermark
        with pytest.raises(JobError, match="another producer writes to t-1"):
            replay(spark, here.data, there.bootstrap, topics=["t"], state=str(tmp_path / "state"))


@pytest.mark.slow
def test_replay_diff_profile_and_load_commands_report_their_results(tmp_path: Path) -> None:
    with tailrace.Broker(tmp_path / "here") as here, tailrace.Broker(tmp_path / "there") as there:
        here.create_topic("t")
        put(here.bootstrap, "t", 0, numbered(30))
        done = command("replay", here.data, there.bootstrap, "--topic", "t", "--create", "--json")
        assert json.loads(done.stdout)["partitions"][0]["records"] == 30
        assert command("diff", here.data, there.bootstrap).returncode == 0
        put(there.bootstrap, "t", 0, numbered(1))
        ran = command("diff", here.data, there.bootstrap)
        assert ran.returncode == 1
        assert ran.stdout.splitlines()[-2:] == ["t-0: offset 30 only there", "different"]
        ran = command("profile", here.data, "--output", tmp_path / "page")
        assert "distinct keys" in ran.stdout
        assert (tmp_path / "page" / "profile.html").exists()
        lines = tmp_path / "lines.json"
        lines.write_text('{"key": "a", "value": "b"}\n')
        ran = command("load", lines, tmp_path / "new", "--format", "json", "--topic", "x", "--partitions", "1")
        assert ran.stdout.splitlines()[-1] == "1 record loaded, 1 topic created"
        ran = command("load", lines, here.data, "--format", "json", "--topic", "t", "--bootstrap", here.bootstrap)
        assert ran.returncode == 0, ran
        assert command("diff", here.data, "nowhere").returncode == 2
