"""The schemas of framed values: from a dictionary by id, or from a schema registry.

Each Python worker queries the registry once per schema id, so the registry must be reachable from the workers. The URL
may contain a user name and password: http://name:password@registry:8081
"""

from __future__ import annotations

import base64
import json
import urllib.request
from collections.abc import Mapping
from typing import Final
from urllib.parse import unquote, urlsplit

from tailrace.client.security.redirects import open_url

_TIMEOUT_S: Final = 30


class SchemaUnknown(Exception):
    """The schema with an id cannot be found."""


class Schemas:
    def __init__(self, source: str | Mapping[int, str]) -> None:
        """Use the registry at a URL, or the given schemas by id."""
        self._url = source.rstrip("/") if isinstance(source, str) else None
        self._known = {} if isinstance(source, str) else dict(source)

    def text(self, schema_id: int) -> str:
        if schema_id not in self._known:
            if self._url is None:
                given = ", ".join(map(str, sorted(self._known))) or "none"
                raise SchemaUnknown(f"schema {schema_id} is not among the given schemas: {given}")
            self._known[schema_id] = self._fetch(schema_id)
        return self._known[schema_id]

    def _fetch(self, schema_id: int) -> str:
        assert self._url is not None
        parts = urlsplit(self._url)
        if parts.scheme not in ("http", "https"):
            raise SchemaUnknown(f"{self._url!r} is not the URL of a schema registry: write http://host:8081")
        where = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
        request = urllib.request.Request(f"{where}/schemas/ids/{schema_id}", headers={"Accept": "application/json"})
        if parts.username is not None:
            pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
            request.add_header("Authorization", f"Basic {base64.b64encode(pair.encode()).decode()}")
        try:
            with open_url(request, _TIMEOUT_S) as answer:
                found = json.load(answer)
        except (OSError, ValueError) as error:  # urllib's errors are OSErrors
            raise SchemaUnknown(f"schema {schema_id} cannot be read from {where}: {error}") from error
        if found.get("schemaType", "AVRO") != "AVRO":
            raise SchemaUnknown(f"schema {schema_id} at {where} has type {found['schemaType']}, not AVRO")
        if found.get("references"):
            raise SchemaUnknown(
                f"schema {schema_id} at {where} has references to other schemas, which are not supported"
            )
        return str(found["schema"])
