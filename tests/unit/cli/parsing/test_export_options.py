"""Options of `job export` that would have no effect are refused by name, before Spark starts."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.command import tailrace


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["--freshness", "5"], "--freshness is for --to iceberg and delta, not for --to parquet"),
        (["--merge-every", "2"], "--merge-every is for --to iceberg and delta, not for --to parquet"),
        (["--to", "delta", "--freshness", "5"], "--freshness needs --follow: a single run exports once"),
        (["--to", "delta", "--merge-every", "2"], "--merge-every needs --follow: a single run merges no files"),
        (["--to", "delta", "--keep-snapshots", "all"], "--keep-snapshots needs --follow: a single run removes no snap"),
        (["--partition-by", "partition"], "an export to parquet cannot be partitioned by partition"),
        (["-X", "security.protocl=SSL"], "-X has the unknown setting security.protocl"),
    ],
)
def test_an_option_without_effect_is_refused(words: list[str], error: str, tmp_path: Path) -> None:
    ran = tailrace("job", "export", "localhost:1", tmp_path / "out", "--topic", "t", *words)
    assert ran.status == 2
    assert ran.err.startswith(f"tailrace: {error}")
