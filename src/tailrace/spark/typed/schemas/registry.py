"""Registry: schemas of a Confluent-compatible schema registry, by id and by subject.

Every response is bounded in size and time, and a request is repeated when the registry is down or overloaded. A schema
id that the registry does not know is remembered. A worker asks for a limited number of unknown ids, because the ids
come from the values. A registry that cannot be asked fails the job: the values are not at fault.
"""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import quote, unquote, urlsplit

from tailrace.client.security.http_exchange import exchange
from tailrace.client.security.tls_settings import Tls
from tailrace.spark.jobs.errors import JobError

_ATTEMPTS: Final = 4
_PAUSE_S: Final = 0.25
_TIMEOUT_S: Final = 20.0
_MAX_UNKNOWN: Final = 100
_MAX_REFERENCES: Final = 100
_RETRIABLE: Final = (408, 429, 500, 502, 503, 504)


class RegistryUnreachable(JobError):
    """A registry that does not respond, or refuses the client. The message has no credentials."""


class SchemaUnknown(Exception):
    """The registry does not have a schema."""


@dataclass(frozen=True, slots=True)
class RegistryAddress:
    """The address of a registry, with the value of the Authorization header. It is never shown."""

    url: str
    authorization: str | None = field(default=None, repr=False)
    tls: Tls | None = field(default=None, repr=False)

    @classmethod
    def parse(cls, url: str, credentials: str | None = None, tls: Tls | None = None) -> RegistryAddress:
        """Parse a URL, which may contain NAME:PASSWORD@. `credentials` is NAME:PASSWORD or `Bearer TOKEN`."""
        parts = urlsplit(url.strip())
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
            shown = url.rpartition("@")[2]
            raise ValueError(f"{shown!r} is not the URL of a schema registry: write http://host:8081")
        if credentials is None and parts.username is not None:
            credentials = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        authorization = None
        if credentials is not None and credentials.startswith("Bearer "):
            authorization = credentials.strip()
        elif credentials is not None:
            if ":" not in credentials or "\n" in credentials.strip():
                raise ValueError("the credentials of the schema registry must be NAME:PASSWORD or `Bearer TOKEN`")
            authorization = f"Basic {base64.b64encode(credentials.strip().encode()).decode()}"
        where = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path.rstrip('/')}"
        return cls(where, authorization, tls)


@dataclass(frozen=True, slots=True)
class RegisteredSchema:
    kind: str  # AVRO, JSON or PROTOBUF
    text: str  # for Protobuf the serialized file descriptor, in base64
    references: Mapping[str, str] = field(default_factory=dict)  # name → text, with all their references


class Registry:
    """It is pickled to workers without its cached schemas."""

    def __init__(self, address: RegistryAddress, pause: Callable[[float], None] = time.sleep) -> None:
        self.address = address
        self._pause = pause
        self._known: dict[int, RegisteredSchema] = {}
        self._unknown: dict[int, str] = {}

    def __getstate__(self) -> RegistryAddress:
        return self.address

    def __setstate__(self, address: RegistryAddress) -> None:
        Registry.__init__(self, address)

    def by_id(self, schema_id: int) -> RegisteredSchema:
        """Return the schema with an id. Raise SchemaUnknown if there is none."""
        if schema_id in self._known:
            return self._known[schema_id]
        if schema_id in self._unknown:
            raise SchemaUnknown(self._unknown[schema_id])
        if len(self._unknown) >= _MAX_UNKNOWN:
            raise SchemaUnknown(
                f"schema {schema_id} was not looked up: {_MAX_UNKNOWN} other ids are unknown to {self.address.url}"
            )
        try:
            self._known[schema_id] = self._complete(self._ask(f"/schemas/ids/{schema_id}"), f"schema {schema_id}")
        except SchemaUnknown as error:
            self._unknown[schema_id] = str(error)
            raise
        return self._known[schema_id]

    def latest(self, subject: str) -> RegisteredSchema:
        """Return the latest schema of a subject, such as `orders-value`."""
        path = f"/subjects/{quote(subject, safe='')}/versions/latest"
        return self._complete(self._ask(path), f"subject {subject}")

    def _complete(self, found: dict[str, Any], what: str) -> RegisteredSchema:
        """Return the schema with the texts of its references."""
        kind = found.get("schemaType") or "AVRO"
        if kind == "PROTOBUF":
            found = self._serialized(found, what)
        references: dict[str, str] = {}
        self._collect(found, references, kind, what)
        return RegisteredSchema(str(kind), _text(found, self.address.url, what), references)

    def _collect(self, found: dict[str, Any], references: dict[str, str], kind: str, what: str) -> None:
        """Add the references of a schema, those that they refer to first."""
        waiting = found.get("references") or []
        if not isinstance(waiting, list):
            raise RegistryUnreachable(f"{self.address.url} sent {what} with references that are not a list")
        for one in waiting:
            try:
                name, subject, version = str(one["name"]), quote(str(one["subject"]), safe=""), int(one["version"])
            except (TypeError, KeyError, ValueError):
                raise RegistryUnreachable(f"{self.address.url} sent {what} with a reference of another form") from None
            if name in references:
                continue
            if len(references) >= _MAX_REFERENCES:
                raise SchemaUnknown(f"{what} has more than {_MAX_REFERENCES} references")
            references[name] = ""  # a reference to itself ends here
            form = "?format=serialized" if kind == "PROTOBUF" else ""
            inner = self._ask(f"/subjects/{subject}/versions/{version}{form}")
            self._collect(inner, references, kind, what)
            del references[name]
            references[name] = _text(inner, self.address.url, what)

    def _serialized(self, found: dict[str, Any], what: str) -> dict[str, Any]:
        """Return a Protobuf schema as a file descriptor: its source would need a compiler."""
        if "id" not in found and not what.startswith("schema "):
            raise RegistryUnreachable(f"{self.address.url} sent {what} without an id")
        number = found.get("id", what.removeprefix("schema "))
        again = self._ask(f"/schemas/ids/{number}?format=serialized")
        return {**found, "schema": again.get("schema")}

    def _ask(self, path: str) -> dict[str, Any]:
        """Return the JSON object of a successful response. Raise SchemaUnknown for a 404."""
        url = f"{self.address.url}{path}"
        headers = {} if self.address.authorization is None else {"Authorization": self.address.authorization}
        problem = ""
        for attempt in range(_ATTEMPTS):
            if attempt:
                self._pause(_PAUSE_S * 4**attempt)
            try:
                answer = exchange(url, headers=headers, tls=self.address.tls, timeout_s=_TIMEOUT_S)
            except OSError as error:
                problem = str(error)
                continue
            if answer.status == 404:
                raise SchemaUnknown(f"{self.address.url} has no {path.partition('?')[0].removeprefix('/')}")
            if answer.status in _RETRIABLE:
                problem = f"it responds with status {answer.status}"
                continue
            if answer.status != 200:
                raise RegistryUnreachable(
                    f"the schema registry {self.address.url} refuses {path}: status {answer.status}"
                )
            found = _object(answer.body)
            if found is not None:
                return found
            problem = f"{path} is not a JSON object, but {answer.body[:40]!r}"  # perhaps it was cut off
        text = f"the schema registry {self.address.url} cannot be asked: {problem}"
        raise RegistryUnreachable(text, is_transient=True)


def _object(body: bytes) -> dict[str, Any] | None:
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _text(found: Mapping[str, Any], url: str, what: str) -> str:
    text = found.get("schema")
    if not isinstance(text, str):
        raise RegistryUnreachable(f"{url} sent {what} without its text")
    return text
