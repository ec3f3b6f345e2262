"""A schema registry on loopback with the responses that a test gives it, also hostile ones."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from json import dumps
from typing import Any


@dataclass
class FakeRegistry:
    url: str = ""
    answers: dict[str, Any] = field(default_factory=dict)  # path → JSON, bytes, or a list of these for each request
    asked: list[tuple[str, str | None]] = field(default_factory=list)  # path and Authorization
    drip_s: float | None = None  # pause after every byte

    def add(self, schema_id: int, schema: str, *, subject: str | None = None, **more: Any) -> None:
        found = {"schema": schema, **more}
        self.answers[f"/schemas/ids/{schema_id}"] = found
        if subject is not None:
            self.answers[f"/subjects/{subject}/versions/latest"] = {**found, "id": schema_id, "subject": subject}

    def next_answer(self, path: str) -> tuple[int, bytes]:
        found = self.answers.get(path)
        if isinstance(found, list):
            found = found.pop(0) if len(found) > 1 else found[0]
        if found is None:
            return 404, dumps({"error_code": 40403, "message": "Schema not found"}).encode()
        if isinstance(found, int):
            return found, b"{}"
        return 200, found if isinstance(found, bytes) else dumps(found).encode()


@contextmanager
def fake_registry() -> Iterator[FakeRegistry]:
    registry = FakeRegistry()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            registry.asked.append((self.path, self.headers.get("Authorization")))
            status, body = registry.next_answer(self.path)
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            try:
                if registry.drip_s is None:
                    self.wfile.write(body)
                else:
                    for byte in body:
                        self.wfile.write(bytes([byte]))
                        time.sleep(registry.drip_s)
            except OSError:
                self.close_connection = True

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    registry.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield registry
    finally:
        server.shutdown()
        server.server_close()
