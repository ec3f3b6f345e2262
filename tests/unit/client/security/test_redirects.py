"""Credentials of an HTTP request are sent only to the host of its URL."""

from __future__ import annotations

import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer

from tailrace.client.security.redirects import open_url
from tailrace.spark.functions.schemas import Schemas


class Site:
    def __init__(self) -> None:
        self.seen: list[tuple[str, str | None]] = []
        self.moved: dict[str, str] = {}
        site = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                site.seen.append((self.path, self.headers["Authorization"]))
                target = site.moved.get(self.path)
                body = b'{"schema": "\\"string\\""}'
                self.send_response(200 if target is None else 302)
                if target is not None:
                    self.send_header("Location", target)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *args: object) -> None:
                """Suppress the log output."""

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"


@contextmanager
def two_sites() -> Iterator[tuple[Site, Site]]:
    sites = Site(), Site()
    threads = [threading.Thread(target=site.server.serve_forever, args=(0.01,)) for site in sites]
    for thread in threads:
        thread.start()
    try:
        yield sites
    finally:
        for site in sites:
            site.server.shutdown()
            site.server.server_close()
        for thread in threads:
            thread.join()


def test_a_redirect_to_another_host_loses_the_credentials_and_one_on_the_same_host_keeps_them() -> None:
    with two_sites() as (first, second):
        first.moved = {"/a": f"{first.url}/b", "/b": f"{second.url}/c"}
        request = urllib.request.Request(f"{first.url}/a", headers={"Authorization": "Basic x", "Accept": "text/plain"})
        with open_url(request, 10) as answer:
            assert answer.status == 200
        assert first.seen == [("/a", "Basic x"), ("/b", "Basic x")]
        assert second.seen == [("/c", None)]


def test_the_password_of_a_schema_registry_does_not_follow_a_redirect() -> None:
    with two_sites() as (first, second):
        first.moved = {"/schemas/ids/7": f"{second.url}/schemas/ids/7"}
        address = first.url.replace("http://", "http://alice:secret@")
        assert Schemas(address).text(7) == '"string"'
        assert first.seen[0][1] is not None
        assert second.seen == [("/schemas/ids/7", None)]
