"""Security settings of Kafka's clients, and the SASL exchanges."""

from __future__ import annotations

import pickle

import pytest

from tailrace.client.errors import AuthenticationFailed, UnsupportedSecurity
from tailrace.client.security.sasl import exchange_of
from tailrace.client.security.security import PLAIN_TEXT, Sasl, security_of
from tailrace.client.security.tls_settings import Tls
from tailrace.client.security.tls_socket import client_context

PLAIN = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="alice" password="a \\"b\\" c";'
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule required username=alice password='x;y';"


def test_no_settings_mean_plaintext() -> None:
    assert security_of({}) == PLAIN_TEXT


def test_security_can_be_pickled_and_hides_its_secrets() -> None:
    found = security_of({
        "security.protocol": "sasl_ssl",
        "ssl.truststore.location": "/ca.pem",
        "ssl.endpoint.identification.algorithm": "",
        "sasl.mechanism": "PLAIN",
        "sasl.jaas.config": PLAIN,
    })  # fmt: skip
    assert found.tls == Tls(authorities_file="/ca.pem", checks_name=False)
    assert found.sasl == Sasl(mechanism="PLAIN", username="alice", password='a "b" c')
    assert pickle.loads(pickle.dumps(found)) == found
    assert 'a "b' not in repr(found)


def test_pem_in_one_line_gets_its_line_breaks_back() -> None:
    line = "-----BEGIN CERTIFICATE----- QUJD REVG -----END CERTIFICATE-----"
    found = security_of({"security.protocol": "SSL", "ssl.truststore.certificates": line}).tls
    assert found is not None
    assert found.authorities == "-----BEGIN CERTIFICATE-----\nQUJD\nREVG\n-----END CERTIFICATE-----\n"


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"security.protocol": "TLS"}, "security.protocol is 'TLS'; it must be one of PLAINTEXT, SSL"),
        (
            {"ssl.truststore.location": "x"},
            "ssl.truststore.location has no effect while security.protocol is PLAINTEXT",
        ),
        ({"security.protocol": "SSL", "sasl.mechanism": "PLAIN"}, "sasl.mechanism has no effect"),
        (
            {"security.protocol": "SSL", "ssl.keystore.type": "BKS"},
            "ssl.keystore.type is 'BKS'; supported are PEM, JKS",
        ),
        ({"security.protocol": "SSL", "ssl.keystore.key": "k"}, "must be set together"),
        ({"security.protocol": "SASL_SSL"}, "sasl.mechanism is missing; set it to one of PLAIN, SCRAM"),
        ({"security.protocol": "SASL_SSL", "sasl.mechanism": "GSSAPI"}, "sasl.mechanism is 'GSSAPI'; supported are"),
        ({"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN"}, "sasl.jaas.config is missing"),
        (
            {"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN", "sasl.jaas.config": SCRAM},
            "PLAIN needs PlainLoginModule",
        ),
    ],
)
def test_a_wrong_security_setting_is_reported_by_name(settings: dict[str, str], words: str) -> None:
    with pytest.raises(UnsupportedSecurity, match=words):
        security_of(settings)


# The example of RFC 7677, section 3.
NONCE = "rOprNGfwEbeRWgbNEkqO"
SERVER_FIRST = b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
CLIENT_FINAL = (
    b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
)
USER = Sasl(mechanism="SCRAM-SHA-256", username="user", password="pencil")


def test_scram_messages_are_those_of_the_rfc() -> None:
    exchange = exchange_of(USER, NONCE)
    assert next(exchange) == b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
    assert exchange.send(SERVER_FIRST) == CLIENT_FINAL
    with pytest.raises(StopIteration):
        exchange.send(b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=")


def test_a_broker_that_does_not_know_the_password_is_refused() -> None:
    exchange = exchange_of(USER, NONCE)
    next(exchange)
    exchange.send(SERVER_FIRST)
    with pytest.raises(AuthenticationFailed, match="does not know the password"):
        exchange.send(b"v=AAAATRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=")


MALFORMED = {
    "another nonce": b"r=other,s=W22Z,i=4096",
    "too few iterations": SERVER_FIRST.replace(b"4096", b"1"),
    "iterations of 5,000 digits": SERVER_FIRST.replace(b"4096", b"9" * 5_000),
    "digits of another script": SERVER_FIRST.replace(b"4096", "\u0664\u0660\u0669\u0666".encode()),
    "an error": b"e=other-error",
    "bytes that are not text": b"r=\xff\xfe",
    "no salt": SERVER_FIRST.replace(b"s=", b"t="),
    "a salt that is not base64": SERVER_FIRST.replace(b"s=W", b"s="),
}


@pytest.mark.parametrize("answer", MALFORMED.values(), ids=MALFORMED)
def test_a_malformed_scram_response_is_refused(answer: bytes) -> None:
    exchange = exchange_of(USER, NONCE)
    next(exchange)
    with pytest.raises(AuthenticationFailed):
        exchange.send(answer)


@pytest.mark.parametrize("answer", [b"\xff", "v=\u00e9".encode(), b""])
def test_a_malformed_proof_of_the_broker_is_refused(answer: bytes) -> None:
    exchange = exchange_of(USER, NONCE)
    next(exchange)
    exchange.send(SERVER_FIRST)
    with pytest.raises(AuthenticationFailed):
        exchange.send(answer)


def test_iterations_are_limited_and_more_so_for_an_exchange_that_may_not_wait() -> None:
    for may_wait, iterations in ((True, b"1000001"), (False, b"16385")):
        exchange = exchange_of(USER, NONCE, may_wait=may_wait)
        next(exchange)
        with pytest.raises(AuthenticationFailed, match=f"requests {int(iterations)} SCRAM iterations"):
            exchange.send(SERVER_FIRST.replace(b"4096", iterations))


def test_commas_in_a_scram_user_name_are_escaped() -> None:
    exchange = exchange_of(Sasl(mechanism="SCRAM-SHA-512", username="a,b=c", password="x"), "n")
    assert next(exchange) == b"n,,n=a=2Cb=3Dc,r=n"


@pytest.mark.parametrize("setting", ["authorities", "identity"])
def test_a_missing_file_of_certificates_is_named(setting: str) -> None:
    tls = Tls(**{f"{setting}_file": "/nowhere/some.pem", f"{setting}_type": "PEM"})  # type: ignore[arg-type]
    with pytest.raises(UnsupportedSecurity, match=r"^/nowhere/some\.pem: No such file or directory$"):
        client_context(tls)
