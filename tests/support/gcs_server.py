"""A Google Cloud Storage emulator (gcp-storage-emulator) on loopback.

It runs in its own process, because pyarrow closes streams without giving other threads a chance to respond.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.error import URLError
from urllib.parse import quote
from urllib.request import Request, urlopen

_SERVE = """
import socket, sys
from gcp_storage_emulator.server import create_server
with socket.create_server(("127.0.0.1", 0)) as free:
    port = free.getsockname()[1]
print(port, flush=True)
create_server("127.0.0.1", port, in_memory=True, default_bucket="logs").run()
"""


@contextmanager
def gcs_server() -> Iterator[str]:
    """Yield the endpoint. It has one bucket, logs."""
    process = subprocess.Popen(
        [sys.executable, "-c", _SERVE], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    try:
        assert process.stdout is not None
        endpoint = f"http://127.0.0.1:{int(process.stdout.readline())}"
        _wait(endpoint)
        yield endpoint
    finally:
        process.kill()
        process.wait()


def _wait(endpoint: str) -> None:
    deadline = time.monotonic() + 60
    while True:
        try:
            urlopen(f"{endpoint}/storage/v1/b/logs").read()
            return
        except URLError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)


def upload(endpoint: str, directory: Path, prefix: str) -> str:
    """Upload the files of a directory as objects, and return their address. The server accepts no empty objects."""
    for file in sorted(path for path in directory.rglob("*") if path.is_file() and path.stat().st_size):
        name = quote(f"{prefix}/{file.relative_to(directory).as_posix()}", safe="")
        request = Request(
            f"{endpoint}/upload/storage/v1/b/logs/o?uploadType=media&name={name}",
            data=file.read_bytes(),
            headers={"Content-Type": "application/octet-stream"},
            method="POST",
        )
        urlopen(request).read()
    return f"gs://logs/{prefix}"
