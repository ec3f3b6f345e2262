"""The hint of jobs over little data: it names a command without Spark for each directory."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import Any

import pytest

from tailrace.cli.jobs import small_data
from tailrace.cli.jobs.small_data import hint_if_small
from tests.support.command import write_directory


def hint(capsys: pytest.CaptureFixture[str], *directories: object, **options: Any) -> str:
    chosen = {"master": "local[*]", "topic": [], "partition": [], "directory": list(map(str, directories)), **options}
    hint_if_small(Namespace(**chosen), "tailrace log verify", "would check them")
    return capsys.readouterr().err


def test_every_directory_is_named_with_the_chosen_partitions(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = write_directory(tmp_path / "a", "plain"), write_directory(tmp_path / "the second", "plain")
    text = hint(capsys, first, second, topic=["plain"], partition=[0])
    assert text.endswith(
        f" of data need no Spark: `tailrace log verify {first} --topic plain --partition 0` and "
        f"`tailrace log verify '{second}' --topic plain --partition 0` would check them, in less time\n"
    )
    assert hint(capsys, first, topic=["other"]).startswith("tailrace: 0 B of data need no Spark")


def test_large_data_a_cluster_and_a_bucket_get_no_hint(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    data = write_directory(tmp_path / "a", "plain")
    assert hint(capsys, data, master="spark://host:7077") == ""
    assert hint(capsys, data, "s3://backups/kafka") == ""
    assert hint(capsys, tmp_path / "nowhere") == ""
    monkeypatch.setattr(small_data, "SMALL_BYTES", 1)
    assert hint(capsys, data) == ""
