from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.s3_server import S3Server, s3_server


@pytest.fixture(scope="session")
def running_store() -> Iterator[S3Server]:
    pytest.importorskip("moto")
    pytest.importorskip("pyarrow")
    with s3_server() as server:
        yield server


@pytest.fixture
def s3(running_store: S3Server, monkeypatch: pytest.MonkeyPatch) -> S3Server:
    """Start a server, and set the environment to use only it."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE", "AWS_ENDPOINT_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/dev/null")
    running_store.busy = 0
    return running_store
