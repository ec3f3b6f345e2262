"""Key stores of the JDK's keytool and of openssl (tests/support/tls/stores/make.sh) are read, used, or refused."""

from __future__ import annotations

import os
import ssl
from pathlib import Path
from typing import Any

import pytest

from tailrace.client.errors import UnsupportedSecurity
from tailrace.client.security.key_entries import UnreadableStore
from tailrace.client.security.key_stores import read_store
from tailrace.client.security.tls_settings import tls_of
from tailrace.client.security.tls_socket import client_context
from tailrace.model.topic_config import InvalidConfig
from tailrace.server.tls.listener_tls import tls_of_listener

TLS = Path(__file__).parents[3] / "support" / "tls"
STORES = TLS / "stores"
PASSWORD = "secret1"


def client(trust: str, identity: str | None = None, **more: str) -> ssl.SSLContext:
    settings = {"ssl.truststore.location": str(STORES / trust), "ssl.truststore.password": PASSWORD}
    if identity is not None:
        settings |= {"ssl.keystore.location": str(STORES / identity), "ssl.keystore.password": PASSWORD}
    return client_context(tls_of({**settings, **{key.replace("_", "."): text for key, text in more.items()}}))


def listener(store: str, **more: str) -> ssl.SSLContext:
    settings = {
        "ssl.keystore.location": str(STORES / store),
        "ssl.keystore.password": PASSWORD,
        "ssl.truststore.location": str(STORES / "trust.jks"),
        "ssl.client.auth": "required",
        **{key.replace("_", "."): text for key, text in more.items()},
    }
    return tls_of_listener(settings, "SSL", "SSL").context


def shake_hands(server: ssl.SSLContext, client: ssl.SSLContext) -> dict[str, Any] | None:
    """Connect two contexts in memory; return the client's certificate as the server sees it."""
    here, there = ssl.MemoryBIO(), ssl.MemoryBIO()
    one = server.wrap_bio(here, there, server_side=True)
    other = client.wrap_bio(there, here, server_hostname="127.0.0.1")
    for _ in range(4):
        for side in (other, one):
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue
    return one.getpeercert()


@pytest.mark.parametrize("identity", ["client.jks", "client.p12", "other-key.jks"])
@pytest.mark.parametrize("store", ["broker.jks", "broker.p12", "java.p12"])
def test_listeners_and_clients_with_stores_trust_each_other(store: str, identity: str) -> None:
    own = {"ssl_key_password": "secret2"} if identity == "other-key.jks" else {}
    for trust in ("trust.jks", "trust.p12", "openssl-trust.p12"):
        certificate = shake_hands(listener(store), client(trust, identity, **own))
        assert certificate
        assert "client" in str(certificate["subject"])


@pytest.mark.parametrize("kind", ["JKS", "PKCS12", "pkcs12"])
@pytest.mark.parametrize("store", ["broker.jks", "broker.p12"])
def test_each_type_reads_both_formats(store: str, kind: str) -> None:
    assert listener(store, ssl_keystore_type=kind)


@pytest.mark.parametrize("ending", ["jks", "p12"])
def test_a_store_of_several_entries_has_keys_and_trusted_certificates(ending: str) -> None:
    entries = read_store(str(STORES / f"several.{ending}"), PASSWORD)
    authority = ssl.PEM_cert_to_DER_cert((TLS / "authority.pem").read_text())
    assert authority in entries.trusted
    assert len(entries.authorities) == 3
    assert len(entries.keys) == (2 if ending == "jks" else 1)
    assert listener(f"several.{ending}")
    assert client(f"several.{ending}")


def test_an_expired_certificate_is_loaded_and_refused_by_the_other_side() -> None:
    for ending in ("jks", "p12"):
        server = listener(f"expired.{ending}", ssl_client_auth="none")
        trusting = client(f"expired.{ending}", ssl_endpoint_identification_algorithm="")
        with pytest.raises(ssl.SSLCertVerificationError, match="expired"):
            shake_hands(server, trusting)


@pytest.mark.parametrize(
    ("store", "password", "reason"),
    [
        ("broker.jks", "wrong1", "the password is wrong"),
        ("broker.p12", "wrong1", "the password is wrong"),
        ("java.p12", "wrong1", "the password is wrong"),
        ("other-key.jks", PASSWORD, "password of key 'client' is wrong .ssl.key.password"),
        ("other.jceks", PASSWORD, "format JCEKS: convert it with keytool"),
        ("missing.jks", PASSWORD, "No such file"),
        ("make.sh", PASSWORD, "neither the format JKS nor PKCS12"),
        ("../broker.pem", PASSWORD, "the file is PEM text: set ssl.keystore.type"),
        ("nothing.jks", PASSWORD, "no private key"),
        ("nothing.p12", PASSWORD, "no private key"),
        ("trust.jks", PASSWORD, "no private key"),
    ],
)
def test_a_store_that_cannot_be_used_is_refused_with_its_name_and_the_reason(
    store: str, password: str, reason: str
) -> None:
    with pytest.raises(InvalidConfig, match=reason) as refused:
        listener(store, ssl_keystore_password=password)
    assert Path(store).name in str(refused.value)
    assert "secret1" not in str(refused.value)


def test_a_trust_store_without_certificates_is_refused() -> None:
    for store in ("nothing.jks", "nothing.p12"):
        with pytest.raises(UnsupportedSecurity, match=f"{store} has no certificate"):
            client(store)


def test_empty_and_damaged_files_are_refused(tmp_path: Path) -> None:
    (tmp_path / "empty.jks").write_bytes(b"")
    with pytest.raises(UnreadableStore, match=r"^store \S+empty\.jks: the file is empty"):
        read_store(str(tmp_path / "empty.jks"), PASSWORD)
    for store in ("several.jks", "several.p12"):
        whole = (STORES / store).read_bytes()
        for size in (*range(1, 200), *range(200, len(whole), 97)):
            (tmp_path / store).write_bytes(whole[:size])
            for password in (PASSWORD, None):
                with pytest.raises(UnreadableStore, match=store):
                    read_store(str(tmp_path / store), password)


def test_settings_that_contradict_each_other_are_refused() -> None:
    for settings, reason in (
        ({"ssl_keystore_type": "BKS"}, "ssl.keystore.type is 'BKS'"),
        ({"ssl_keystore_type": "PEM"}, "a PEM store has no password"),
        ({"ssl_keystore_password": ""}, "ssl.keystore.password is missing"),
    ):
        with pytest.raises(InvalidConfig, match=reason):
            listener("broker.jks", **settings)
    with pytest.raises(InvalidConfig, match="in a PKCS12 store both must be the same"):
        listener("broker.p12", ssl_key_password="other")


def test_no_private_key_is_left_on_disk(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    assert listener("broker.jks")
    monkeypatch.delattr(os, "memfd_create", raising=False)
    assert listener("broker.jks")
    assert list(tmp_path.iterdir()) == []


def test_passwords_are_not_in_the_repr() -> None:
    tls = tls_of({"ssl.keystore.location": "x", "ssl.keystore.password": "p1", "ssl.truststore.location": "y"})
    assert "p1" not in repr(tls)
