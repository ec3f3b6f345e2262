"""The location of a log: a path of this machine, or an address in an object store such as s3://bucket/prefix.

An address may contain settings that are not secret, as in pyarrow: s3://bucket/prefix?region=eu-west-1&anonymous=true.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import NamedTuple
from urllib.parse import parse_qsl

from tailrace.object_stores.settings import StoreSettings

_ADDRESS = re.compile(r"([a-z][a-z0-9+.-]*)://(.*)", re.IGNORECASE | re.DOTALL)
# Users of Spark write s3a, the name of the Hadoop connector, for the same store.
AMAZON, GOOGLE = ("s3", "s3a", "s3n"), ("gs", "gcs")
_IN_ADDRESS = ("endpoint_override", "region", "anonymous", "scheme")


class WrongAddress(ValueError):
    """An address that cannot be read from."""


class Place(NamedTuple):
    """A path, as shown in messages, and the settings of its store; None: a path of this machine."""

    path: str
    settings: StoreSettings | None


def is_remote(text: str) -> bool:
    found = _ADDRESS.match(text.strip())
    return found is not None and found[1].lower() != "file"


def parse_place(text: str, settings: StoreSettings | None = None) -> Place:
    """Parse a path or address. Settings in the address override `settings`."""
    found = _ADDRESS.fullmatch(text.strip())
    if found is None:
        path = text.strip()
        if not path:
            raise WrongAddress("the path is empty")
        return Place(path.rstrip("/") or "/", None)
    scheme, rest = found[1].lower(), found[2]
    if scheme == "file":
        if not rest.startswith("/"):
            raise WrongAddress("a file address needs an absolute path, such as file:///var/lib/kafka")
        return Place(rest.rstrip("/") or "/", None)
    if scheme not in (*AMAZON, *GOOGLE):
        raise WrongAddress(f"{scheme}:// is not supported; use s3://, s3a://, gs:// or file://")
    path, _, query = rest.partition("?")
    path = path.rstrip("/")
    if not path or path.startswith("/"):
        raise WrongAddress("the address has no bucket")
    if "@" in path.partition("/")[0]:
        raise WrongAddress("an address must not contain keys, because it is shown and logged")
    return Place(f"{scheme}://{path}", _with_query(settings or StoreSettings(), query))


def _with_query(settings: StoreSettings, query: str) -> StoreSettings:
    given = dict(parse_qsl(query, keep_blank_values=True))
    for name in given:
        if name not in _IN_ADDRESS:
            raise WrongAddress(f"{name} cannot be set in an address; only {', '.join(_IN_ADDRESS)} can")
    if "anonymous" in given:
        if given["anonymous"].lower() not in ("true", "false"):
            raise WrongAddress(f"anonymous is {given['anonymous']!r}; it must be true or false")
        settings = replace(settings, anonymous=given["anonymous"].lower() == "true")
    if "region" in given:
        settings = replace(settings, region=given["region"])
    if "endpoint_override" in given:
        endpoint = given["endpoint_override"]
        prefix = f"{given['scheme']}://" if "scheme" in given and "://" not in endpoint else ""
        settings = replace(settings, endpoint_override=prefix + endpoint)
    return settings
