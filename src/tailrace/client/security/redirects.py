"""open_url: an HTTP request that sends credentials only to the host of its URL.

urllib sends the headers again to the target of a redirect. `open_url` removes the Authorization header if the redirect
leads to another host, port or scheme.
"""

from __future__ import annotations

import urllib.request
from email.message import Message
from http.client import HTTPResponse
from typing import IO, cast
from urllib.parse import urlsplit


class _Redirects(urllib.request.HTTPRedirectHandler):
    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: Message, newurl: str
    ) -> urllib.request.Request | None:
        redirected = super().redirect_request(req, fp, code, msg, headers, newurl)  # type: ignore[arg-type]
        if redirected is not None and _place(redirected.full_url) != _place(req.full_url):
            redirected.remove_header("Authorization")
        return redirected


def _place(url: str) -> tuple[str, str]:
    parts = urlsplit(url)
    return parts.scheme, parts.netloc


def open_url(request: urllib.request.Request, timeout_s: float) -> HTTPResponse:
    """Send a request and follow redirects. Raise OSError on failure."""
    return cast(HTTPResponse, urllib.request.build_opener(_Redirects).open(request, timeout=timeout_s))
