"""SigningKeys: the public keys of an identity provider (JWKS, RFC 7517), and the verification of signatures.

A key is chosen as jose4j does. Its `kid` must be the token's, if the token has one. Its type and curve must fit the
token's `alg`. If several keys fit, those with another `alg` of their own are dropped. If several keys remain, the first
is used. Unsuitable keys are left out: symmetric keys, keys for encryption, and RSA keys whose size makes them unsafe or
slow.
"""

from __future__ import annotations

import json
from collections import defaultdict
from typing import Any, Final, NamedTuple

from joserfc.errors import JoseError
from joserfc.jwk import ECKey, OKPKey, RSAKey
from joserfc.jws import JWSRegistry

from tailrace.model.security.jwt import decode_bytes

RSA_BITS_MIN: Final = 2_048
RSA_BITS_MAX: Final = 8_192  # the verification of a signature takes 0.4 ms
RSA_EXPONENT_MAX: Final = 2**32  # the time of a verification grows with it
_KINDS: Final[dict[str, type[RSAKey | ECKey | OKPKey]]] = {"RSA": RSAKey, "EC": ECKey, "OKP": OKPKey}


class _Algorithm(NamedTuple):
    kind: str  # the type of the key
    curve: str | None
    name: str  # the algorithm's name in joserfc


_ALGORITHMS: Final = {
    **{name: _Algorithm("RSA", None, name) for name in ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512")},
    "ES256": _Algorithm("EC", "P-256", "ES256"),
    "ES384": _Algorithm("EC", "P-384", "ES384"),
    "ES512": _Algorithm("EC", "P-521", "ES512"),
    "EdDSA": _Algorithm("OKP", "Ed25519", "Ed25519"),
}


class InvalidKeys(ValueError):
    """The data is not a JSON Web Key Set, or a key is not usable."""


class SigningKey(NamedTuple):
    id: str | None
    kind: str
    algorithm: str | None
    curve: str | None
    key: Any  # a key object of joserfc


class SigningKeys:
    def __init__(self, keys: list[SigningKey], left_out: list[str]) -> None:
        self._by_id: defaultdict[str | None, list[SigningKey]] = defaultdict(list)
        self._by_kind: defaultdict[str, list[SigningKey]] = defaultdict(list)
        for one in keys:
            self._by_id[one.id].append(one)
            self._by_kind[one.kind].append(one)
        self.left_out = left_out  # for each unused key, the reason
        self.count = len(keys)

    @classmethod
    def parse(cls, data: bytes) -> SigningKeys:
        try:
            entries = json.loads(data)["keys"]
            if not isinstance(entries, list):
                raise TypeError("keys is not a list")
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            raise InvalidKeys(f'the data is not a JSON Web Key Set, {{"keys": […]}}: {error!r}') from None
        keys, left_out = [], []
        for entry in entries:
            try:
                keys.append(_key(entry))
            except (InvalidKeys, JoseError, ValueError, TypeError, KeyError) as error:
                left_out.append(f"{entry.get('kid') if isinstance(entry, dict) else entry!r:.100}: {error}")
        return cls(keys, left_out)

    def select(self, key_id: str | None, algorithm: str) -> SigningKey | None:
        """Return the key that verifies a token, or None if the set does not have it."""
        wanted = _ALGORITHMS.get(algorithm)
        if wanted is None:
            return None
        found = self._by_kind.get(wanted.kind, ()) if key_id is None else self._by_id.get(key_id, ())
        fitting = [one for one in found if one.kind == wanted.kind and wanted.curve in (None, one.curve)]
        if len(fitting) > 1:
            fitting = [one for one in fitting if one.algorithm in (None, algorithm)]
        return fitting[0] if fitting else None


def is_known_algorithm(name: str) -> bool:
    return name in _ALGORITHMS


def is_signed_by(key: SigningKey, algorithm: str, message: bytes, signature: bytes) -> bool:
    """Return True if the signature of the message was made with this key."""
    try:
        return JWSRegistry.algorithms[_ALGORITHMS[algorithm].name].verify(message, signature, key.key)
    except (JoseError, ValueError):
        return False


def _key(entry: Any) -> SigningKey:
    kind = entry["kty"]
    if kind not in _KINDS:
        raise InvalidKeys(f"kty {kind!r} is not one of {', '.join(_KINDS)}")
    if entry.get("use", "sig") != "sig":
        raise InvalidKeys(f"the key's use is {entry['use']!r}, not 'sig'")
    if kind == "RSA":
        modulus, exponent = (_size(entry[name]) for name in ("n", "e"))
        if not RSA_BITS_MIN <= modulus.bit_length() <= RSA_BITS_MAX:
            raise InvalidKeys(f"the key has {modulus.bit_length()} bits; {RSA_BITS_MIN} to {RSA_BITS_MAX} are accepted")
        if exponent > RSA_EXPONENT_MAX:
            raise InvalidKeys(f"the exponent has {exponent.bit_length()} bits; at most 32 are accepted")
    public = {name: entry[name] for name in ("kty", "n", "e", "crv", "x", "y") if name in entry}
    key_id, algorithm, curve = (entry.get(name) for name in ("kid", "alg", "crv"))
    if not isinstance(key_id, str | None):
        raise InvalidKeys("kid is not a string")
    made = _KINDS[kind].import_key(public)
    made.public_key  # noqa: B018 - joserfc builds the key here, not at the first token
    return SigningKey(key_id, kind, algorithm, curve, made)


def _size(number: str) -> int:
    return int.from_bytes(decode_bytes(number), "big")
