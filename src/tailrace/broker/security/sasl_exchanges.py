"""The broker's side of the SASL exchanges PLAIN (RFC 4616) and SCRAM (RFC 5802).

`evaluate` is called with each token from the client and returns the broker's token. When the exchange is complete,
`user` is set. AuthenticationRefused has a message for the client, which never reveals if a user exists.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import re
from collections.abc import Callable, Mapping
from typing import Final, Protocol

from tailrace.broker.security.token_credentials import TokenLogin
from tailrace.model.security import scram
from tailrace.protocol.messages import UserScramCredentialRecord

# (mechanism, name) → the current credential in the metadata, or a fake one that no password matches.
Credential = Callable[[str, str], UserScramCredentialRecord]
# (mechanism, token id) → the login of a delegation token.
FindToken = Callable[[str, str], TokenLogin | None]

_NAME: Final = r"(?:[^=,\x00]|=2C|=3D)+"
_VALUE: Final = r"[^,\x00]+"
_FIRST: Final = re.compile(
    rf"(?P<header>n,(?:a=(?P<authzid>{_NAME}))?,)(?P<bare>(?:m={_VALUE},)?n=(?P<name>{_NAME}),r=(?P<nonce>[\x21-\x2b\x2d-\x7e]+)"
    rf"(?P<extensions>(?:,[A-Za-z]+={_VALUE})*))"
)
_FINAL: Final = re.compile(
    rf"(?P<unproven>c=(?P<binding>[A-Za-z0-9/+=]*),r=(?P<nonce>[\x21-\x2b\x2d-\x7e]+)(?:,[A-Za-z]+={_VALUE})*),p=(?P<proof>[A-Za-z0-9/+=]+)"
)


class AuthenticationRefused(Exception):
    """The credentials are wrong, or the client's message is malformed."""

    def __init__(self, client_message: str | None = None) -> None:
        super().__init__(client_message or "invalid credentials")
        self.client_message = client_message


class Exchange(Protocol):
    user: str | None
    token: TokenLogin | None  # the delegation token that the login uses

    def evaluate(self, token: bytes, now_ms: int) -> bytes: ...


class PlainExchange:
    token: TokenLogin | None = None

    def __init__(self, passwords: Mapping[str, str]) -> None:
        self._passwords = passwords
        self.user: str | None = None

    def evaluate(self, token: bytes, now_ms: int) -> bytes:
        parts = token.decode("utf-8", "replace").split("\0", 3)
        if len(parts) != 3:
            raise AuthenticationRefused(f"Invalid SASL/PLAIN response: expected 3 tokens, got {len(parts)}")
        acting_for, name, password = parts
        if not name:
            raise AuthenticationRefused("Authentication failed: username not specified")
        if not password:
            raise AuthenticationRefused("Authentication failed: password not specified")
        expected = self._passwords.get(name)
        if expected is None or not hmac.compare_digest(expected.encode(), password.encode()):
            raise AuthenticationRefused("Authentication failed: Invalid username or password")
        _check_acting_for(acting_for, name)
        self.user = name
        return b""


class ScramExchange:
    def __init__(self, mechanism: str, credential: Credential, nonce: str, find_token: FindToken) -> None:
        self._mechanism = mechanism
        self._digest = scram.digest_of(mechanism)
        self._find = credential
        self._find_token = find_token
        self.token: TokenLogin | None = None
        self._nonce = nonce
        self._name = ""
        self._credential: UserScramCredentialRecord | None = None  # None until the client's first message
        self._messages = ""  # SCRAM's AuthMessage so far
        self._binding = ""  # the expected value of `c=`: the header of the client's first message, in base64
        self.user: str | None = None

    def evaluate(self, token: bytes, now_ms: int) -> bytes:
        text = token.decode("utf-8", "replace")
        return (
            self._handle_first_message(text)
            if self._credential is None
            else self._handle_final_message(text, self._credential)
        )

    def _handle_first_message(self, text: str) -> bytes:
        found = _FIRST.fullmatch(text)
        if found is None:
            raise AuthenticationRefused
        self._name = scram.plain_name(found["name"])
        if _asks_for_token(found["extensions"]):
            self.token = self._find_token(self._mechanism, self._name)
            credential = None if self.token is None else self.token.credential
        else:
            credential = self._find(self._mechanism, self._name)
        if credential is None:
            raise AuthenticationRefused
        _check_acting_for(scram.plain_name(found["authzid"] or ""), self._name)
        self._credential = credential
        self._nonce = found["nonce"] + self._nonce
        answer = f"r={self._nonce},s={base64.b64encode(credential.salt).decode()},i={credential.iterations}"
        self._messages = f"{found['bare']},{answer}"
        self._binding = base64.b64encode(found["header"].encode()).decode()
        return answer.encode()

    def _handle_final_message(self, text: str, credential: UserScramCredentialRecord) -> bytes:
        found = _FINAL.fullmatch(text)
        if found is None or found["nonce"] != self._nonce or found["binding"] != self._binding:
            raise AuthenticationRefused
        messages = f"{self._messages},{found['unproven']}".encode()
        try:
            proof = base64.b64decode(found["proof"], validate=True)
            key = scram.exclusive_or(proof, scram.signature(self._digest, credential.stored_key, messages))
        except (binascii.Error, ValueError):
            raise AuthenticationRefused from None
        if not hmac.compare_digest(scram.stored_key(self._digest, key), credential.stored_key):
            raise AuthenticationRefused
        self.user = self._name if self.token is None else self.token.owner
        ours = scram.signature(self._digest, credential.server_key, messages)
        return b"v=" + base64.b64encode(ours)


def _asks_for_token(extensions: str) -> bool:
    """Return True if the extensions of a first message have tokenauth=true. The last of repeated names is used."""
    given = dict(part.split("=", 1) for part in extensions.split(",")[1:])
    return given.get("tokenauth", "").lower() == "true"


def _check_acting_for(acting_for: str, name: str) -> None:
    if acting_for and acting_for != name:
        raise AuthenticationRefused(
            "Authentication failed: Client requested an authorization id that is different from username"
        )
