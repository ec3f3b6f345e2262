"""An S3 server on loopback (moto) that counts its requests and fails on demand."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

KEYS = {"accessKey": "someone", "secretKey": "nobody-may-see-this"}


class Request(NamedTuple):
    method: str
    key: str  # bucket and key
    query: str
    range: str
    sent: int  # bytes of the response body

    @property
    def kind(self) -> str:
        if "list-type" in self.query:
            return "LIST"
        return self.method


@dataclass
class S3Server:
    endpoint: str
    requests: list[Request] = field(default_factory=list)
    busy: int = 0  # number of next requests that get status 503
    backend: Any = None  # moto's backend, to put objects without a request
    on_request: Callable[[str, str], None] = lambda method, path: None

    @property
    def options(self) -> dict[str, str]:
        """Return the options that a query needs in addition to its path."""
        return {"endpointOverride": self.endpoint, "region": "us-east-1", **KEYS}

    def upload(self, directory: Path, bucket: str, prefix: str = "") -> str:
        """Upload the files of a directory as objects, and return their address."""
        if bucket not in self.backend.buckets:
            self.backend.create_bucket(bucket, "us-east-1")
        for file in sorted(path for path in directory.rglob("*") if path.is_file()):
            key = "/".join(filter(None, (prefix, file.relative_to(directory).as_posix())))
            self.backend.put_object(bucket, key, file.read_bytes())
        return f"s3://{bucket}/{prefix}".rstrip("/")

    def remove(self, address: str) -> None:
        bucket, _, key = address.removeprefix("s3://").partition("/")
        self.backend.delete_object(bucket, key)

    @contextmanager
    def counted(self) -> Iterator[list[Request]]:
        """Yield the list of requests within a block."""
        start = len(self.requests)
        found: list[Request] = []
        yield found
        found += self.requests[start:]


@contextmanager
def s3_server() -> Iterator[S3Server]:
    from moto.core import DEFAULT_ACCOUNT_ID
    from moto.s3.models import s3_backends
    from moto.server import DomainDispatcherApplication, create_backend_app
    from werkzeug.serving import make_server

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    backend = DomainDispatcherApplication(create_backend_app)
    found = S3Server("")

    def application(environment: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        method, path = environment["REQUEST_METHOD"], environment["PATH_INFO"]
        found.on_request(method, path)
        request = method, path.strip("/"), environment.get("QUERY_STRING", ""), environment.get("HTTP_RANGE", "")
        if found.busy:
            found.busy -= 1
            found.requests.append(Request(*request, 0))
            start("503 Slow Down", [("Content-Length", "0")])
            return [b""]
        body = list(backend(environment, start))
        found.requests.append(Request(*request, sum(map(len, body))))
        return body

    server = make_server("127.0.0.1", 0, application, threaded=True)
    found.endpoint = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        found.backend = s3_backends[DEFAULT_ACCOUNT_ID]["aws"]
        yield found
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
