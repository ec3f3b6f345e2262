"""TokenCredentials: SCRAM credentials of delegation tokens, computed from their HMACs at the first login.

In a SCRAM login with the extension tokenauth=true, the user name is the id of a delegation token, and the password is
its HMAC in base64. The client is authenticated as the token's owner until the token expires.
"""

from __future__ import annotations

import base64
from collections import OrderedDict
from collections.abc import Callable
from typing import Final, NamedTuple

from tailrace.metadata.decisions.delegation_tokens import TokenSettings
from tailrace.metadata.decisions.scram_credentials import credential_record
from tailrace.metadata.image.image import MetadataImage
from tailrace.model.security import scram
from tailrace.protocol.messages import UserScramCredentialRecord

CACHED_MAX: Final = 4_096  # the computation of a credential takes several ms


class TokenLogin(NamedTuple):
    credential: UserScramCredentialRecord
    owner: str  # the user name, without "User:"
    expires_ms: int


class TokenCredentials:
    def __init__(
        self, settings: TokenSettings, image: Callable[[], MetadataImage], new_salt: Callable[[], bytes]
    ) -> None:
        self._settings = settings
        self._image = image
        self._new_salt = new_salt
        self._cached: OrderedDict[tuple[str, str], UserScramCredentialRecord] = OrderedDict()

    def find(self, mechanism: str, token_id: str) -> TokenLogin | None:
        token = self._image().delegation_tokens.get(token_id)
        if token is None or not self._settings.is_enabled:
            return None
        key = mechanism, token_id
        credential = self._cached.pop(key, None) or self._made(mechanism, token_id)
        self._cached[key] = credential
        if len(self._cached) > CACHED_MAX:
            self._cached.popitem(last=False)
        return TokenLogin(credential, token.owner.partition(":")[2], token.expiration_timestamp)

    def _made(self, mechanism: str, token_id: str) -> UserScramCredentialRecord:
        salt, rounds = self._new_salt(), scram.ITERATIONS_MIN
        password = base64.b64encode(self._settings.hmac_of(token_id)).decode()
        salted = scram.salted_password(scram.digest_of(mechanism), password, salt, rounds)
        return credential_record(token_id, scram.MECHANISMS[mechanism], salt, salted, rounds)
