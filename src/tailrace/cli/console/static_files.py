"""The files of the page, read and compressed once."""

from __future__ import annotations

import gzip
import hashlib
from importlib.resources import files
from typing import Final

from tailrace.cli.console.http_message import Request, Response

_KINDS: Final = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
_COMPRESSED_FROM: Final = 1_024


class StaticFiles:
    def __init__(self) -> None:
        self._files: dict[str, tuple[str, bytes, bytes | None, str]] = {}
        folder = files("tailrace.cli.console") / "static"
        for entry in folder.iterdir():
            kind = _KINDS.get(entry.name[entry.name.rfind(".") :])
            if kind is not None:
                self._add(entry.name, kind, entry.read_bytes())

    def _add(self, name: str, kind: str, data: bytes) -> None:
        tag = f'"{hashlib.sha256(data).hexdigest()[:32]}"'
        compressed = gzip.compress(data, mtime=0) if len(data) >= _COMPRESSED_FROM else None
        self._files[name] = kind, data, compressed, tag

    def response(self, request: Request, name: str) -> Response | None:
        """Return a file, or None if there is none of that name."""
        found = self._files.get(name)
        if found is None:
            return None
        kind, data, compressed, tag = found
        headers = {"etag": tag, "cache-control": "no-cache"}
        if request.headers.get("if-none-match") == tag:
            return Response(304, b"", kind, headers)
        if compressed is not None and "gzip" in request.headers.get("accept-encoding", ""):
            return Response(200, compressed, kind, {**headers, "content-encoding": "gzip", "vary": "accept-encoding"})
        return Response(200, data, kind, headers)
