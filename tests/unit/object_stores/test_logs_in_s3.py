"""Logs in a bucket give the same rows as the same files on disk."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import pytest

from tailrace.spark.source.errors import SourceError
from tests.support.golden import golden, golden_names
from tests.support.s3_server import S3Server
from tests.support.source_rows import read


def answer(options: dict[str, str]) -> Any:
    """Return the rows, or the error message."""
    try:
        return read(options)
    except SourceError as error:
        return f"{type(error).__name__}: {error}"


# read_committed reads everything that read_uncommitted reads, and more. So the default run skips the latter.
DEFAULT = {(name, "read_committed") for name in golden_names() if name != "broker-crashed"}
DEFAULT.add(("transactions", "read_uncommitted"))
CASES = [
    case if case in DEFAULT else pytest.param(*case, marks=pytest.mark.slow)
    for case in product(golden_names(), ("read_uncommitted", "read_committed"))
]


@pytest.mark.parametrize(("name", "isolation"), CASES)
def test_a_golden_directory_gives_the_same_rows(name: str, isolation: str, s3: S3Server, tmp_path: Path) -> None:
    directory = golden(name).unpack(tmp_path)
    address = s3.upload(directory, f"golden-{name}", "data/node-1")
    wanted = {"subscribePattern": ".*", "kafka.isolation.level": isolation}
    expected = answer({"path": str(directory), **wanted})
    if isinstance(expected, str):
        expected = expected.replace(str(directory), address)
    assert answer({"path": address, **s3.options, **wanted}) == expected
    assert expected
