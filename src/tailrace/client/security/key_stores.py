"""Key stores and trust stores of Java: JKS and PKCS12 files, as ssl.keystore.* and ssl.truststore.* name them.

As in Java, the types JKS and PKCS12 each read both formats; the file's first bytes decide. PKCS12 is read with the
package `cryptography` (extra `keystores`).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from tailrace.client.security.jks_store import JCEKS_MAGIC, MAGIC, read_jks
from tailrace.client.security.key_entries import KeyEntry, StoreEntries, UnreadableStore

TYPES: Final = ("JKS", "PKCS12")
FILE_BYTES_MAX: Final = 16 * 1024 * 1024
_SEQUENCE: Final = b"\x30"
_PEM: Final = b"-----BEGIN "


def is_pem_file(path: str) -> bool:
    """Return True if a file has PEM text."""
    with Path(path).open("rb") as file:
        return _PEM in file.read(65_536)


def read_store(path: str, password: str | None, key_password: str | None = None) -> StoreEntries:
    """Return the entries of a JKS or PKCS12 file. Raise UnreadableStore with the file and the reason."""
    try:
        data = _read_file(path)
        if data.startswith(MAGIC):
            return read_jks(data, password, key_password)
        if data.startswith(_SEQUENCE):
            if key_password not in (None, password):
                raise UnreadableStore(
                    "ssl.key.password differs from the store's password; in a PKCS12 store both must be the same"
                )
            return _read_pkcs12(data, password)
        raise UnreadableStore(_reason(data))
    except UnreadableStore as error:
        raise UnreadableStore(f"store {path}: {error}") from None


def _read_file(path: str) -> bytes:
    try:
        with Path(path).open("rb") as file:
            data = file.read(FILE_BYTES_MAX + 1)
    except OSError as error:
        raise UnreadableStore(error.strerror or str(error)) from error
    if len(data) > FILE_BYTES_MAX:
        raise UnreadableStore(f"the file has more than {FILE_BYTES_MAX} bytes")
    return data


def _reason(data: bytes) -> str:
    if not data:
        return "the file is empty"
    if _PEM in data:
        return "the file is PEM text: set ssl.keystore.type or ssl.truststore.type to PEM"
    if data.startswith(JCEKS_MAGIC):
        return "the file has the format JCEKS: convert it with keytool -importkeystore -deststoretype PKCS12"
    return "the file has neither the format JKS nor PKCS12"


def _read_pkcs12(data: bytes, password: str | None) -> StoreEntries:
    try:
        from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, pkcs12
    except ImportError:
        raise UnreadableStore(
            "the format PKCS12 needs the package cryptography: pip install 'tailrace[keystores]'"
        ) from None
    try:
        store = pkcs12.load_pkcs12(data, None if password is None else password.encode())
    except ValueError as error:
        raise UnreadableStore(_pkcs12_reason(error)) from None
    others = store.additional_certs
    if store.key is None or store.cert is None:
        # Java lists a certificate without a key as trusted.
        named = [*others, *([store.cert] if store.cert is not None else [])]
        return StoreEntries((), tuple(one.certificate.public_bytes(Encoding.DER) for one in named))
    key = store.key.private_bytes(Encoding.DER, PrivateFormat.PKCS8, NoEncryption())
    chain = [store.cert.certificate, *_chain(store.cert.certificate, [one.certificate for one in others])]
    alias = (store.cert.friendly_name or b"").decode("utf-8", "replace")
    # A trusted certificate has a name; the other certificates of a chain have none.
    trusted = [one.certificate for one in others if one.friendly_name is not None]
    entry = KeyEntry(alias, key, tuple(one.public_bytes(Encoding.DER) for one in chain))
    return StoreEntries((entry,), tuple(one.public_bytes(Encoding.DER) for one in trusted))


def _pkcs12_reason(error: ValueError) -> str:
    text = str(error)
    return "the password is wrong, or the file is damaged" if "password" in text.lower() else f"{text or error!r}"


def _chain(certificate: Any, others: list[Any]) -> list[Any]:
    """Return the issuers of a certificate that are in the store, in order."""
    found: list[Any] = []
    by_subject = {one.subject: one for one in others}
    while certificate.issuer != certificate.subject and certificate.issuer in by_subject:
        certificate = by_subject.pop(certificate.issuer)
        found.append(certificate)
    return found
