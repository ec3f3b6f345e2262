"""Where a log is: a path of this machine, or an address in an object store such as s3://bucket/prefix.

An address may carry settings that are no secret, as pyarrow's do: s3://bucket/prefix?region=eu-west-1&anonymous=true.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import NamedTuple
from urllib.parse import parse_qsl

from tailrace.object_stores.settings import StoreSettings

_ADDRESS = re.compile(r"([a-z][a-z0-9+.-]*)://(.*)", re.IGNORECASE | re.DOTALL)
# Spark's users write s3a, after the Hadoop connector; it is the same store.
AMAZON, GOOGLE = ("s3", "s3a", "s3n"), ("gs", "gcs")
_IN_ADDRESS = ("endpoint_override", "region", "anonymous", "scheme")


class WrongAddress(ValueError):
    """An address that names no place to read from."""


class Place(NamedTuple):
    """A path, as all messages show it, and the settings of its store; None: it is on this machine."""

    path: str
    settings: StoreSettings | None


def is_remote(text: str) -> bool:
    found = _ADDRESS.match(text.strip())
    return found is not None and found[1].lower() != "file"


def parse_place(text: str, settings: StoreSettings | None = None) -> Place:
    """Settings in the address go before those given beside it."""
    found = _ADDRESS.fullmatch(text.strip())
    if found is None:
        path = text.strip()
        if not path:
            raise WrongAddress("it is empty")
        return Place(path.rstrip("/") or "/", None)
    scheme, rest = found[1].lower(), found[2]
    if scheme == "file":
        if not rest.startswith("/"):
            raise WrongAddress("a file address names a whole path: file:///var/lib/kafka")
        return Place(rest.rstrip("/") or "/", None)
    if scheme not in (*AMAZON, *GOOGLE):
        raise WrongAddress(f"there is no reading from {scheme}://; s3://, s3a://, gs:// and file:// are known")
    path, _, query = rest.partition("?")
    path = path.rstrip("/")
    if not path or path.startswith("/"):
        raise WrongAddress("it names no bucket")
    if "@" in path.partition("/")[0]:
        raise WrongAddress("keys do not belong into an address, which is shown and logged")
    return Place(f"{scheme}://{path}", _with_query(settings or StoreSettings(), query))


def _with_query(settings: StoreSettings, query: str) -> StoreSettings:
    said = dict(parse_qsl(query, keep_blank_values=True))
    for name in said:
        if name not in _IN_ADDRESS:
            raise WrongAddress(f"{name} does not belong into an address; {', '.join(_IN_ADDRESS)} may stand there")
    if "anonymous" in said:
        if said["anonymous"].lower() not in ("true", "false"):
            raise WrongAddress("anonymous is true or false")
        settings = replace(settings, anonymous=said["anonymous"].lower() == "true")
    if "region" in said:
        settings = replace(settings, region=said["region"])
    if "endpoint_override" in said:
        endpoint = said["endpoint_override"]
        prefix = f"{said['scheme']}://" if "scheme" in said and "://" not in endpoint else ""
        settings = replace(settings, endpoint_override=prefix + endpoint)
    return settings
