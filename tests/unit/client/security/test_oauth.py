"""OAUTHBEARER for clients: settings, tokens from an endpoint, from a file and unsigned, and their replacement."""

from __future__ import annotations

import json
import pickle
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from joserfc.jwk import ECKey, RSAKey

from tailrace.client.errors import AuthenticationFailed, ClientError, UnsupportedSecurity
from tailrace.client.security.http_exchange import ANSWER_BYTES_MAX, exchange
from tailrace.client.security.oauth_settings import OauthLogin, TokenEndpoint
from tailrace.client.security.sasl import exchange_of
from tailrace.client.security.security import security_of
from tailrace.client.security.token_login import TokenLogin
from tailrace.client.security.token_retrieval import retrieve
from tailrace.model.security.jwt import decode_part, encode_part
from tailrace.model.security.oauthbearer import read_message
from tests.support.identity_provider import IdentityProvider
from tests.support.secured import TLS

MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required"
HANDLER = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler"
BASE = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "OAUTHBEARER"}
UNSECURED = {**BASE, "sasl.jaas.config": f'{MODULE} unsecuredLoginStringClaim_sub="alice";'}


@pytest.fixture(scope="module")
def shared() -> Iterator[IdentityProvider]:
    with IdentityProvider() as running:
        yield running


@pytest.fixture
def provider(shared: IdentityProvider) -> IdentityProvider:
    shared.status, shared.body, shared.delay_s = 200, None, 0.0
    shared.forms.clear()
    shared.requests.clear()
    return shared


def secured(url: str, **changes: str) -> dict[str, str]:
    return {
        **BASE,
        "sasl.jaas.config": f"{MODULE};",
        "sasl.login.callback.handler.class": HANDLER,
        "sasl.oauthbearer.token.endpoint.url": url,
        "sasl.oauthbearer.client.credentials.client.id": "alice",
        "sasl.oauthbearer.client.credentials.client.secret": "secret",
        "sasl.login.retry.backoff.max.ms": "200",
        **changes,
    }


def login_in(settings: dict[str, str]) -> OauthLogin:
    sasl = security_of(settings).sasl
    assert sasl is not None
    assert sasl.oauth is not None
    return sasl.oauth


def claims_of(token: str) -> dict[str, Any]:
    return decode_part(token.split(".")[1])


def test_an_unsigned_token_has_the_claims_of_the_jaas_options() -> None:
    options = (
        'unsecuredLoginStringClaim_sub="alice" unsecuredLoginNumberClaim_level="7" '
        'unsecuredLoginListClaim_scope="|a|b" unsecuredLoginLifetimeSeconds="60" unsecuredLoginExtension_trace="x y"'
    )
    login = login_in({**BASE, "sasl.jaas.config": f"{MODULE} {options};"})
    token = retrieve(login)
    header, _, signature = token.split(".")
    assert (decode_part(header), signature) == ({"alg": "none"}, "")
    claims = claims_of(token)
    assert claims.pop("exp") - claims.pop("iat") == pytest.approx(60)
    assert claims == {"sub": "alice", "level": 7, "scope": ["a", "b"]}
    assert login.extensions == (("trace", "x y"),)


def test_settings_can_be_pickled_and_hide_their_secrets() -> None:
    found = security_of(secured("https://identity.example.org/token"))
    assert pickle.loads(pickle.dumps(found)) == found
    assert "secret'" not in repr(found)


def test_a_token_comes_from_the_endpoint_with_client_credentials(provider: IdentityProvider) -> None:
    token = retrieve(login_in(secured(provider.token_url, **{"sasl.oauthbearer.scope": "a b"})))
    assert claims_of(token)["sub"] == "alice"
    assert provider.forms == [{"grant_type": "client_credentials", "scope": "a b"}]


def test_credentials_of_the_jaas_options_are_the_default(provider: IdentityProvider) -> None:
    settings = secured(provider.token_url)
    for name in ("id", "secret"):
        del settings[f"sasl.oauthbearer.client.credentials.client.{name}"]
    settings["sasl.jaas.config"] = f'{MODULE} clientId="broker" clientSecret="brk secret" extension_a="b";'
    login = login_in(settings)
    assert claims_of(retrieve(login))["sub"] == "broker"
    assert login.extensions == (("a", "b"),)
    settings["sasl.oauthbearer.header.urlencode"] = "true"
    assert claims_of(retrieve(login_in(settings)))["sub"] == "broker"


def test_a_token_comes_from_a_file(tmp_path: Path, provider: IdentityProvider) -> None:
    path = tmp_path / "a token"
    path.write_text(f"{provider.token(sub='file')}\n")
    assert claims_of(retrieve(login_in(secured(path.as_uri()))))["sub"] == "file"


@pytest.mark.parametrize("algorithm", ["RS256", "ES256"])
@pytest.mark.parametrize("is_grant", [True, False])
def test_an_assertion_is_signed_with_the_private_key(
    tmp_path: Path, provider: IdentityProvider, algorithm: str, is_grant: bool
) -> None:
    key = RSAKey.generate_key(2_048) if algorithm == "RS256" else ECKey.generate_key("P-256")
    (tmp_path / "key.pem").write_bytes(key.as_pem(private=True, password="opens"))
    (tmp_path / "template.json").write_text('{"header": {"kid": "mine"}, "payload": {"extra": 1, "sub": "x"}}')
    start = "sasl.oauthbearer.assertion"
    changes = {
        f"{start}.algorithm": algorithm,
        f"{start}.private.key.file": str(tmp_path / "key.pem"),
        f"{start}.private.key.passphrase": "opens",
        f"{start}.template.file": str(tmp_path / "template.json"),
        f"{start}.claim.iss": "me",
        f"{start}.claim.sub": "carol",
        f"{start}.claim.jti.include": "true",
    }
    if is_grant:
        changes["sasl.oauthbearer.jwt.retriever.class"] = (
            "org.apache.kafka.common.security.oauthbearer.JwtBearerJwtRetriever"
        )
    token = retrieve(login_in(secured(provider.token_url, **changes)))
    assert claims_of(token)["sub"] == "carol"
    (form,) = provider.forms
    sent = form["assertion" if is_grant else "client_assertion"]
    claims = claims_of(sent)
    assert decode_part(sent.split(".")[0]) == {"alg": algorithm, "typ": "JWT", "kid": "mine"}
    assert (claims["iss"], claims["extra"], claims["exp"] - claims["iat"], len(claims["jti"])) == ("me", 1, 300, 36)


@pytest.mark.parametrize(
    ("file", "words"),
    [("none.jwt", "none.jwt cannot be read: .*No such file"), ("odd.jwt", "odd.jwt is not ASCII text")],
)
def test_an_unusable_assertion_file_is_reported_without_a_retry(
    tmp_path: Path, provider: IdentityProvider, file: str, words: str
) -> None:
    (tmp_path / "odd.jwt").write_bytes(b"\xc3\xa4")
    changes = {"sasl.oauthbearer.assertion.file": str(tmp_path / file)}
    with pytest.raises(UnsupportedSecurity, match=words):
        retrieve(login_in(secured(provider.token_url, **changes)))


@pytest.mark.parametrize("lost", ["template", "key"])
def test_a_missing_file_for_signing_is_reported_without_a_retry(
    tmp_path: Path, provider: IdentityProvider, lost: str
) -> None:
    files = {name: tmp_path / name for name in ("template", "key")}
    files["template"].write_text("{}")
    files["key"].write_bytes(ECKey.generate_key("P-256").as_pem(private=True))
    files[lost].unlink()
    changes = {
        "sasl.oauthbearer.assertion.algorithm": "ES256",
        "sasl.oauthbearer.assertion.private.key.file": str(files["key"]),
        "sasl.oauthbearer.assertion.template.file": str(files["template"]),
        "sasl.oauthbearer.assertion.claim.iss": "me",
    }
    with pytest.raises(UnsupportedSecurity, match=f"{lost} cannot be read: .*No such file"):
        retrieve(login_in(secured(provider.token_url, **changes)))


def test_a_transient_failure_of_the_endpoint_is_retried(provider: IdentityProvider) -> None:
    provider.status = 503
    began = time.monotonic()
    with pytest.raises(AuthenticationFailed, match=r"cannot get a token from http://127.*/token: HTTP status 503"):
        retrieve(login_in(secured(provider.token_url)))
    assert provider.requests["/token"] >= 2
    assert time.monotonic() - began < 5


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"sasl.oauthbearer.client.credentials.client.secret": "wrong"}, r"401: invalid_client \(unknown client\)"),
        ({"sasl.oauthbearer.token.endpoint.url": "http://127.0.0.1:1/token"}, "refused"),
        ({"sasl.oauthbearer.token.endpoint.url": "file:///nowhere/token"}, "No such file"),
    ],
)  # fmt: skip
def test_a_failed_retrieval_is_reported_with_its_reason(
    provider: IdentityProvider, changes: dict[str, str], words: str
) -> None:
    with pytest.raises(AuthenticationFailed, match=words) as error:
        retrieve(login_in(secured(provider.token_url, **changes)))
    assert "wrong" not in str(error.value)


@pytest.mark.parametrize(
    ("status", "body", "words"),
    [
        (200, b"{}", "has no access_token"),
        (200, b"[1]", "has no access_token"),
        (200, b'{"access_token": 7}', "has no access_token"),
        (200, b"x" * (ANSWER_BYTES_MAX + 1), "more than 524288 bytes"),
        (302, b"", "redirects to None, which is not followed"),
        (400, b"\x1b[31mred", "status 400: .31mred|red"),
    ],
)
def test_a_response_without_a_token_is_refused(
    provider: IdentityProvider, status: int, body: bytes, words: str
) -> None:
    provider.status, provider.body = status, body
    with pytest.raises(AuthenticationFailed, match=words) as error:
        retrieve(login_in(secured(provider.token_url)))
    assert str(error.value).isprintable()


def test_a_slow_response_is_cut_off_at_the_timeout(provider: IdentityProvider) -> None:
    provider.delay_s = 2.0
    began = time.monotonic()
    with pytest.raises(OSError, match=r".*"):
        exchange(provider.jwks_url, timeout_s=0.2)
    assert time.monotonic() - began < 1.5


def test_https_needs_a_trusted_authority() -> None:
    with IdentityProvider(tls=True) as provider:
        settings = secured(provider.token_url)
        with pytest.raises(AuthenticationFailed, match="certificate"):
            retrieve(login_in(settings))
        trust = f'ssl.truststore.type="PEM" ssl.truststore.location="{TLS / "authority.pem"}"'
        settings["sasl.jaas.config"] = f"{MODULE} {trust};"
        assert claims_of(retrieve(login_in(settings)))["sub"] == "alice"


# Replacement of tokens


class Source:
    def __init__(self, lifetime_s: float = 1_000) -> None:
        self.now_s = 1_000_000.0
        self.lifetime_s = lifetime_s
        self.count = 0
        self.is_down = False

    def get(self, settings: OauthLogin) -> str:
        if self.is_down:
            raise AuthenticationFailed("down")
        self.count += 1
        return f"e30.{encode_part({'n': self.count, 'exp': self.now_s + self.lifetime_s})}.x"

    def login(self, **changes: Any) -> TokenLogin:
        settings = OauthLogin(source=TokenEndpoint(url="http://x"), window_jitter=0.0, **{"buffer_s": 0, **changes})
        return TokenLogin(settings, self.get, lambda: self.now_s)


def number(token: str) -> int:
    return int(claims_of(token)["n"])


def test_a_token_is_used_for_the_window_factor_of_its_lifetime() -> None:
    source = Source()
    login = source.login()
    assert login.current() is None
    assert number(login.token()) == 1
    source.now_s += 799
    assert number(login.token()) == 1
    source.now_s += 2
    assert number(login.token()) == 2


def test_a_token_is_replaced_before_its_buffer_but_after_its_min_period() -> None:
    source = Source()
    login = source.login(buffer_s=300)
    login.token()
    source.now_s += 701
    assert number(login.token()) == 2
    short = Source(lifetime_s=100)
    login = short.login(buffer_s=300)
    login.token()
    short.now_s += 59
    assert number(login.token()) == 1
    short.now_s += 2
    assert number(login.token()) == 2


def test_the_old_token_is_used_until_a_new_one_is_retrieved() -> None:
    source = Source()
    login = source.login()
    login.token()
    source.is_down = True
    source.now_s += 999
    assert number(login.token()) == 1
    source.now_s += 1
    assert login.current() is None
    with pytest.raises(ClientError, match="down"):
        login.token()


def test_a_refused_token_is_replaced_if_it_is_not_new() -> None:
    source = Source()
    login = source.login()
    token = login.token()
    login.refused(token)
    assert login.token() == token
    source.now_s += 61
    login.refused(token)
    assert number(login.token()) == 2


def test_a_thread_keeps_the_token_fresh_until_it_is_released() -> None:
    source = Source(lifetime_s=0.05)
    settings = OauthLogin(source=TokenEndpoint(url="http://x"), buffer_s=0, min_period_s=0)
    source.now_s = time.time()

    def get(settings: OauthLogin) -> str:
        source.now_s = time.time()
        return source.get(settings)

    login = TokenLogin(settings, get)
    login.keep_fresh()
    deadline = time.monotonic() + 10
    while source.count < 4 and time.monotonic() < deadline:
        time.sleep(0.01)
    login.release()
    assert source.count >= 4
    time.sleep(0.1)
    after = source.count
    time.sleep(0.2)
    assert source.count == after


def test_a_slow_endpoint_does_not_delay_callers_while_the_old_token_is_valid() -> None:
    source = Source()
    login = source.login()
    login.token()
    source.now_s += 900
    with login._lock:  # like a thread that is retrieving a token
        assert number(login.token()) == 1


def test_the_thread_survives_an_unexpected_error() -> None:
    source = Source(lifetime_s=0.05)
    failures = [ZeroDivisionError("once")]

    def get(settings: OauthLogin) -> str:
        if source.count and failures:
            raise failures.pop()
        source.now_s = time.time()
        return source.get(settings)

    login = TokenLogin(OauthLogin(source=TokenEndpoint(url="http://x"), buffer_s=0, min_period_s=0), get)
    login.keep_fresh()
    deadline = time.monotonic() + 10
    while source.count < 2 and time.monotonic() < deadline:
        time.sleep(0.01)
    login.release()
    assert (source.count >= 2, failures) == (True, [])


def test_an_invalid_or_expired_token_is_refused() -> None:
    for text in ("x", "e30.e30.x", f"e30.{encode_part({'exp': 5})}.x", f"e30.{encode_part({'exp': True})}.x"):
        login = TokenLogin(OauthLogin(source=TokenEndpoint(url="http://x")), lambda settings, text=text: text)  # type: ignore[misc]
        with pytest.raises(AuthenticationFailed):
            login.token()


# The exchange


def test_the_exchange_sends_the_token_and_acknowledges_a_refusal() -> None:
    sasl = security_of(UNSECURED).sasl
    assert sasl is not None
    exchange = exchange_of(sasl)
    assert claims_of(read_message(next(exchange)).token)["sub"] == "alice"
    assert exchange.send(b'{"status":"invalid_token"}') == b"\x01"
    with pytest.raises(AuthenticationFailed, match="invalid_token"):
        exchange.send(b"")


def test_without_waiting_the_exchange_fails_until_there_is_a_token() -> None:
    sasl = security_of({**UNSECURED, "sasl.login.refresh.buffer.seconds": "7"}).sasl
    assert sasl is not None
    with pytest.raises(AuthenticationFailed, match="there is no valid token: it was not retrieved yet"):
        next(exchange_of(sasl, may_wait=False))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"sasl.jaas.config": f"{MODULE};", "sasl.login.callback.handler.class": ""}, "is missing|not supported"),
        ({"sasl.login.callback.handler.class": "com.example.Mine"}, "'Mine', which is not supported"),
        ({"sasl.oauthbearer.token.endpoint.url": ""}, "it must start with https://"),
        ({"sasl.oauthbearer.token.endpoint.url": "http:///token"}, "it must start with https://"),
        ({"sasl.oauthbearer.token.endpoint.url": "ftp://x"}, "it must start with https://"),
        ({"sasl.oauthbearer.client.credentials.client.secret": ""}, "client.secret is missing"),
        ({"sasl.oauthbearer.jwt.retriever.class": "x.Mine"}, "retriever.class is Mine"),
        ({"sasl.oauthbearer.jwt.retriever.class": "x.FileJwtRetriever"}, "cannot read http"),
        ({"sasl.oauthbearer.jwt.retriever.class": "x.JwtBearerJwtRetriever"}, "private.key.file is missing"),
        ({"sasl.oauthbearer.assertion.claim.iss": "me"}, "private.key.file is missing"),
        ({"sasl.login.refresh.window.factor": "0.1"}, "it must be between 0.5 and 1"),
        ({"sasl.login.refresh.window.factor": "x"}, "is not a number"),
        ({"sasl.jaas.config": f"{MODULE} extension_auth=x;"}, "extension name 'auth' is invalid"),
        ({"sasl.jaas.config": "x.PlainLoginModule required;"}, "OAUTHBEARER needs OAuthBearerLoginModule"),
        ({"sasl.mechanism": "PLAIN", "sasl.jaas.config": "x.PlainLoginModule required;"}, "has no effect while"),
    ],
)
def test_invalid_oauth_settings_are_refused(changes: dict[str, str], words: str) -> None:
    with pytest.raises(UnsupportedSecurity, match=words):
        security_of(secured("http://127.0.0.1:1/token", **changes))


def test_an_unsigned_token_without_a_principal_is_refused() -> None:
    with pytest.raises(UnsupportedSecurity, match="unsecuredLoginStringClaim_sub"):
        security_of({**BASE, "sasl.jaas.config": f"{MODULE};"})


def test_the_response_of_an_identity_provider_is_read_as_json(provider: IdentityProvider) -> None:
    assert {one["kid"] for one in json.loads(exchange(provider.jwks_url).body)["keys"]} == {"rsa", "ec"}
