"""Finds credentials where Amazon's tools find them.

The order is: the settings, the environment, a token of a web identity (Kubernetes), the shared credentials file, the
endpoint of a container, the metadata service of a machine. Temporary credentials are found again before they expire.
"""

from __future__ import annotations

import configparser
import errno
import json
import os
import re
import time
from collections.abc import Callable
from datetime import datetime
from threading import Lock
from typing import Final
from urllib.parse import urlencode

from tailrace.object_stores.settings import StoreSettings
from tailrace.object_stores.writing.aws_signature import AwsKeys, signed_headers
from tailrace.object_stores.writing.web_requests import WebRequests, in_ms

_EARLY_SECONDS: Final = 300
_TIMEOUT_MS: Final = 10_000
_SESSION: Final = "tailrace"


class AwsCredentials:
    """The credentials for a store; None if it is read anonymously."""

    def __init__(self, settings: StoreSettings, region: str) -> None:
        self._settings = settings
        self._region = region
        self._web = WebRequests(attempts=2)
        self._lock = Lock()
        self._keys: AwsKeys | None = None

    def keys(self) -> AwsKeys | None:
        if self._settings.anonymous:
            return None
        with self._lock:
            known = self._keys
            if known is None or (known.expires is not None and time.time() > known.expires - _EARLY_SECONDS):
                self._keys = self._assumed(self._find()) if self._settings.role_arn else self._find()
            assert self._keys is not None
            return self._keys

    def _find(self) -> AwsKeys:
        sources: tuple[Callable[[], AwsKeys | None], ...] = (
            self._from_settings,
            _environment,
            self._web_identity,
            _shared_file,
            self._container,
            self._machine,
        )
        for find in sources:
            keys = find()
            if keys is not None:
                return keys
        raise OSError(
            errno.EACCES, "no credentials were found: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or a profile"
        )

    def _from_settings(self) -> AwsKeys | None:
        one = self._settings
        if one.access_key is None or one.secret_key is None:
            return None
        return AwsKeys(one.access_key, one.secret_key, one.session_token)

    def _web_identity(self) -> AwsKeys | None:
        file, role = os.environ.get("AWS_WEB_IDENTITY_TOKEN_FILE"), os.environ.get("AWS_ROLE_ARN")
        if not file or not role:
            return None
        with open(file) as token:
            asked = {"RoleArn": role, "WebIdentityToken": token.read().strip()}
        return self._from_sts("AssumeRoleWithWebIdentity", asked, None)

    def _assumed(self, keys: AwsKeys) -> AwsKeys:
        return self._from_sts("AssumeRole", {"RoleArn": self._settings.role_arn or ""}, keys)

    def _from_sts(self, action: str, asked: dict[str, str], keys: AwsKeys | None) -> AwsKeys:
        endpoint = os.environ.get("AWS_ENDPOINT_URL_STS") or f"https://sts.{self._region}.amazonaws.com"
        body = urlencode(
            {
                "Action": action,
                "Version": "2011-06-15",
                "RoleSessionName": os.environ.get("AWS_ROLE_SESSION_NAME", _SESSION),
                **asked,
            }
        ).encode()
        plain = {"Content-Type": "application/x-www-form-urlencoded"}
        url = f"{endpoint.rstrip('/')}/"

        def headers() -> dict[str, str]:
            return plain if keys is None else signed_headers("POST", url, plain, body, keys, self._region, "sts")

        answer = self._web.send("POST", url, headers, body, remaining_ms=in_ms(_TIMEOUT_MS))
        found = dict(re.findall(r"<(AccessKeyId|SecretAccessKey|SessionToken|Expiration)>([^<]*)<", answer.text))
        if answer.status != 200 or len(found) < 4:
            raise OSError(errno.EACCES, f"the role cannot be assumed: {endpoint} responded with {answer.status}")
        return AwsKeys(
            found["AccessKeyId"], found["SecretAccessKey"], found["SessionToken"], _seconds(found["Expiration"])
        )

    def _container(self) -> AwsKeys | None:
        relative, full = (os.environ.get(f"AWS_CONTAINER_CREDENTIALS_{one}_URI") for one in ("RELATIVE", "FULL"))
        url = f"http://169.254.170.2{relative}" if relative else full
        if not url:
            return None
        token, file = (os.environ.get(f"AWS_CONTAINER_AUTHORIZATION_TOKEN{one}") for one in ("", "_FILE"))
        if file:
            with open(file) as found:
                token = found.read().strip()
        headers = {"Authorization": token} if token else {}
        return self._from_json(url, headers)

    def _machine(self) -> AwsKeys | None:
        if os.environ.get("AWS_EC2_METADATA_DISABLED", "").lower() == "true":
            return None
        base = os.environ.get("AWS_EC2_METADATA_SERVICE_ENDPOINT", "http://169.254.169.254").rstrip("/")
        web = WebRequests(attempts=1)
        try:
            asked = {"X-aws-ec2-metadata-token-ttl-seconds": "21600"}
            token = web.send("PUT", f"{base}/latest/api/token", lambda: asked, remaining_ms=in_ms(1_000))
            headers = {"X-aws-ec2-metadata-token": token.text} if token.status == 200 else {}
            folder = f"{base}/latest/meta-data/iam/security-credentials/"
            role = web.send("GET", folder, lambda: headers, remaining_ms=in_ms(1_000))
        except OSError:
            return None  # not a machine of Amazon's
        if role.status != 200 or not role.body.strip():
            return None
        return self._from_json(folder + role.text.split()[0], headers)

    def _from_json(self, url: str, headers: dict[str, str]) -> AwsKeys:
        answer = self._web.send("GET", url, lambda: headers, remaining_ms=in_ms(_TIMEOUT_MS))
        try:
            found = json.loads(answer.body)
            return AwsKeys(
                found["AccessKeyId"], found["SecretAccessKey"], found["Token"], _seconds(found["Expiration"])
            )
        except (ValueError, KeyError, TypeError):
            raise OSError(errno.EACCES, f"{url} has no credentials: status {answer.status}") from None


def _environment() -> AwsKeys | None:
    access, secret = os.environ.get("AWS_ACCESS_KEY_ID"), os.environ.get("AWS_SECRET_ACCESS_KEY")
    return AwsKeys(access, secret, os.environ.get("AWS_SESSION_TOKEN")) if access and secret else None


def _shared_file() -> AwsKeys | None:
    files = configparser.RawConfigParser()
    files.read(os.path.expanduser(os.environ.get("AWS_SHARED_CREDENTIALS_FILE", "~/.aws/credentials")))
    profile = os.environ.get("AWS_PROFILE", "default")
    if not files.has_option(profile, "aws_access_key_id") or not files.has_option(profile, "aws_secret_access_key"):
        return None
    token = files.get(profile, "aws_session_token", fallback=None)
    return AwsKeys(files.get(profile, "aws_access_key_id"), files.get(profile, "aws_secret_access_key"), token)


def _seconds(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()
