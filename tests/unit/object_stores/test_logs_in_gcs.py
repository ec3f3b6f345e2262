"""Logs in Google's store give the same rows as the same files on disk."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tailrace.spark.source.errors import Unreadable
from tests.support.gcs_server import gcs_server, upload
from tests.support.golden import golden, golden_names
from tests.support.source_rows import read

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    pytest.importorskip("gcp_storage_emulator")
    with gcs_server() as found:
        yield found


@pytest.mark.parametrize("name", [name for name in golden_names("partition") if name != "crashed-bad-crc"])
def test_a_golden_directory_gives_the_same_rows(name: str, endpoint: str, tmp_path: Path) -> None:
    directory = golden(name).unpack(tmp_path)
    address = upload(endpoint, directory, name)
    wanted = {"subscribe": "topic", "kafka.isolation.level": "read_committed"}
    found = read({"path": address, "endpointOverride": endpoint, "anonymous": "true", **wanted})
    assert found == read({"path": str(directory), **wanted}) != []


def test_a_missing_bucket_or_object_is_reported_in_one_sentence(endpoint: str) -> None:
    for path, words in (
        ("gs://nobodys/x", "no such bucket or object"),
        ("gs://logs/none", "no such object"),
    ):
        with pytest.raises(Unreadable) as error:
            read({"path": path, "subscribe": "topic", "endpointOverride": endpoint, "anonymous": "true"})
        assert str(error.value) == f"{path} cannot be read: {words}"
