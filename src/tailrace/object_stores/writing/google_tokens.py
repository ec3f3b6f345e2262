"""Finds tokens where Google's tools find them: a file of credentials, or the metadata service of a machine.

The file is named by GOOGLE_APPLICATION_CREDENTIALS, or is that of `gcloud auth application-default login`. A service
account's file needs the package `cryptography`, to sign with its key.
"""

from __future__ import annotations

import base64
import errno
import json
import os
import time
from threading import Lock
from typing import Any, Final
from urllib.parse import urlencode

from tailrace.object_stores.writing.web_requests import WebRequests, in_ms

_EARLY_SECONDS: Final = 300
_TIMEOUT_MS: Final = 10_000
_SCOPE: Final = "https://www.googleapis.com/auth/devstorage.read_write"
_LOGIN: Final = "~/.config/gcloud/application_default_credentials.json"
_TOKEN_URI: Final = "https://oauth2.googleapis.com/token"


class GoogleTokens:
    def __init__(self) -> None:
        self._web = WebRequests(attempts=3)
        self._lock = Lock()
        self._token = ""
        self._expires = 0.0

    def token(self) -> str:
        with self._lock:
            if time.time() > self._expires - _EARLY_SECONDS:
                found = self._new()
                self._token = str(found["access_token"])
                self._expires = time.time() + float(found.get("expires_in", 3600))
            return self._token

    def _new(self) -> Any:
        named = os.environ.get("GOOGLE_APPLICATION_CREDENTIALS")
        path = named or os.path.expanduser(_LOGIN)
        if not named and not os.path.exists(path):
            return self._machine()
        with open(path, "rb") as file:
            found = json.load(file)
        if found.get("type") == "service_account":
            assertion = _signed_claim(found)
            return self._exchange(
                found.get("token_uri", _TOKEN_URI),
                {"grant_type": "urn:ietf:params:oauth:grant-type:jwt-bearer", "assertion": assertion},
            )
        if found.get("type") == "authorized_user":
            names = ("client_id", "client_secret", "refresh_token")
            given = {name: str(found[name]) for name in names}
            return self._exchange(found.get("token_uri", _TOKEN_URI), {"grant_type": "refresh_token", **given})
        raise OSError(errno.EACCES, f"credentials of type {found.get('type')!r} are not supported for writing", path)

    def _machine(self) -> Any:
        host = os.environ.get("GCE_METADATA_HOST", "metadata.google.internal")
        url = f"http://{host}/computeMetadata/v1/instance/service-accounts/default/token"
        try:
            answer = self._web.send("GET", url, lambda: {"Metadata-Flavor": "Google"}, remaining_ms=in_ms(_TIMEOUT_MS))
        except OSError:
            answer = None
        if answer is None or answer.status != 200:
            raise OSError(errno.EACCES, "no credentials were found: set GOOGLE_APPLICATION_CREDENTIALS")
        return json.loads(answer.body)

    def _exchange(self, url: str, asked: dict[str, str]) -> Any:
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        body = urlencode(asked).encode()
        answer = self._web.send("POST", url, lambda: headers, body, remaining_ms=in_ms(_TIMEOUT_MS))
        if answer.status != 200:
            raise OSError(errno.EACCES, f"the credentials were refused: {url} responded with {answer.status}")
        return json.loads(answer.body)


def _signed_claim(account: dict[str, Any]) -> str:
    try:
        from cryptography.hazmat.primitives import hashes
        from cryptography.hazmat.primitives.asymmetric import padding
        from cryptography.hazmat.primitives.serialization import load_pem_private_key
    except ImportError:
        raise OSError(
            errno.ENOSYS, "a service account's key needs the package cryptography: pip install 'tailrace[keystores]'"
        ) from None
    now = int(time.time())
    claim = {
        "iss": account["client_email"],
        "scope": _SCOPE,
        "aud": account.get("token_uri", _TOKEN_URI),
        "iat": now,
        "exp": now + 3600,
    }
    head = {"alg": "RS256", "typ": "JWT", "kid": account.get("private_key_id", "")}
    text = ".".join(_base64(json.dumps(part).encode()) for part in (head, claim))
    key: Any = load_pem_private_key(account["private_key"].encode(), None)
    return f"{text}.{_base64(key.sign(text.encode(), padding.PKCS1v15(), hashes.SHA256()))}"


def _base64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
