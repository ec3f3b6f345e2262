"""Request and Response: what the HTTP server hands to the site, and what it gets back."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

JSON = "application/json; charset=utf-8"


@dataclass(frozen=True, slots=True)
class Request:
    """A whole request. Names of headers are in lower case."""

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes = b""
    address: str = ""  # of the client, without its port

    @property
    def has_valid_target(self) -> bool:
        """Return True if `path` and `query` can be read."""
        try:
            return bool(self.path) and self.query is not None
        except ValueError:
            return False

    @property
    def path(self) -> str:
        return unquote(urlsplit(self.target).path)

    @property
    def query(self) -> list[tuple[str, str]]:
        return parse_qsl(urlsplit(self.target).query, keep_blank_values=True, max_num_fields=50)

    def cookie(self, name: str) -> str | None:
        for pair in self.headers.get("cookie", "").split(";"):
            key, _, value = pair.strip().partition("=")
            if key == name:
                return value
        return None


@dataclass(frozen=True, slots=True)
class Response:
    """A response whose body is bytes, or an iterator of pieces that are sent as they come."""

    status: int
    body: bytes | AsyncIterator[bytes] = b""
    kind: str = "text/plain; charset=utf-8"
    headers: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of_json(cls, value: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
        return cls(status, json.dumps(value, ensure_ascii=False).encode(), JSON, headers or {})

    @classmethod
    def of_error(cls, status: int, message: str) -> Response:
        """Return an error in the form in which commands print theirs with --json."""
        return cls.of_json({"error": {"message": message, "status": status}}, status)
