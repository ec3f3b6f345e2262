"""Signs a request with version 4 of Amazon's signatures."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from urllib.parse import parse_qsl, quote, urlsplit


@dataclass(frozen=True, slots=True)
class AwsKeys:
    access_key: str
    secret_key: str = field(repr=False)
    session_token: str | None = field(default=None, repr=False)
    expires: float | None = None  # seconds since 1970


def signed_headers(
    method: str,
    url: str,
    headers: Mapping[str, str],
    body: bytes | memoryview,
    keys: AwsKeys,
    region: str,
    service: str,
) -> dict[str, str]:
    """Return the headers of a request with its signature."""
    now = datetime.now(UTC)
    stamp, day = now.strftime("%Y%m%dT%H%M%SZ"), now.strftime("%Y%m%d")
    parts = urlsplit(url)
    payload = hashlib.sha256(body).hexdigest()
    given = {**headers, "Host": parts.netloc, "X-Amz-Date": stamp, "X-Amz-Content-Sha256": payload}
    if keys.session_token is not None:
        given["X-Amz-Security-Token"] = keys.session_token
    lines = sorted((name.lower(), " ".join(value.split())) for name, value in given.items())
    names = ";".join(name for name, _ in lines)
    query = "&".join(
        f"{quote(name, safe='-_.~')}={quote(value, safe='-_.~')}"
        for name, value in sorted(parse_qsl(parts.query, keep_blank_values=True))
    )
    canonical = "\n".join(
        (method, parts.path or "/", query, "".join(f"{name}:{value}\n" for name, value in lines), names, payload)
    )
    scope = f"{day}/{region}/{service}/aws4_request"
    text = f"AWS4-HMAC-SHA256\n{stamp}\n{scope}\n{hashlib.sha256(canonical.encode()).hexdigest()}"
    key = f"AWS4{keys.secret_key}".encode()
    for part in (day, region, service, "aws4_request"):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    signature = hmac.new(key, text.encode(), hashlib.sha256).hexdigest()
    given["Authorization"] = (
        f"AWS4-HMAC-SHA256 Credential={keys.access_key}/{scope}, SignedHeaders={names}, Signature={signature}"
    )
    return given
