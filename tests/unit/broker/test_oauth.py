"""OAUTHBEARER at the broker: tokens, keys fetched on a worker thread, sessions, and settings that are refused."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
from joserfc.jwk import ECKey, Key, OctKey, OKPKey, RSAKey

from tailrace.broker.broker import Broker
from tailrace.broker.config.broker_config import BrokerConfig
from tailrace.broker.config.oauth_config import JwksSettings
from tailrace.broker.security import key_cache
from tailrace.broker.security.signing_keys import InvalidKeys, SigningKeys, is_signed_by
from tailrace.model.errors import ErrorCode
from tailrace.model.security.jwt import (
    UNTRUSTED_CHARS_MAX,
    MalformedToken,
    decode_bytes,
    decode_part,
    encode_bytes,
    encode_part,
    split_token,
)
from tailrace.model.security.oauthbearer import MalformedMessage, read_message, write_message
from tailrace.model.topic_config import InvalidConfig
from tailrace.protocol import messages as m
from tailrace.waiting.chore import Chore
from tests.support.identity_provider import IdentityProvider
from tests.support.memory_node import NOW_MS, start
from tests.unit.broker.test_guard import Stranger

NOW_S = NOW_MS // 1_000
MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required"
PREFIX = "listener.name.sasl_plaintext.oauthbearer"
UNSECURED = {
    "listeners": "SASL_PLAINTEXT://127.0.0.1:9092",
    "sasl.enabled.mechanisms": "OAUTHBEARER",
    f"{PREFIX}.sasl.jaas.config": f"{MODULE};",
}
SIGNED = {
    **UNSECURED,
    f"{PREFIX}.sasl.server.callback.handler.class": "org.apache.kafka.common.security.oauthbearer."
    "OAuthBearerValidatorCallbackHandler",
    "sasl.oauthbearer.jwks.endpoint.url": "https://identity.example.org/keys",
}
KEYS: dict[str, Key] = {"one": RSAKey.generate_key(2_048), "two": ECKey.generate_key("P-256")}


def jwks(*names: str) -> bytes:
    return json.dumps({"keys": [{**KEYS[name].as_dict(private=False), "kid": name} for name in names]}).encode()


class Provider:
    """An identity provider that responds when the test calls `answer_fetch`."""

    def __init__(self) -> None:
        self.answer: bytes | OSError = jwks("one")
        self.fetches = 0
        self.submitted: list[Chore] = []

    def fetch(self, settings: JwksSettings) -> bytes:
        self.fetches += 1
        if isinstance(self.answer, OSError):
            raise self.answer
        return self.answer

    def start(self, **settings: str) -> Broker:
        return start(static={**SIGNED, **settings}, fetch_keys=self.fetch, submit_fetch=self.submitted.append)

    def answer_fetch(self, now_ms: int) -> None:
        work = self.submitted.pop()
        try:
            result = work.run()
        except OSError as error:
            work.failed(error, now_ms)
        else:
            work.apply(result, now_ms)


def signed(key: str = "one", *, kid: str | None = None, **claims: Any) -> str:
    header = {"alg": "RS256" if key == "one" else "ES256", "kid": kid or key}
    body = {"sub": "alice", "iat": NOW_S, "exp": NOW_S + 600, **claims}
    return IdentityProvider.sign(header, json.dumps(body).encode(), KEYS[key])


def unsigned(**claims: Any) -> str:
    return f"{encode_part({'alg': 'none'})}.{encode_part({'sub': 'alice', 'exp': NOW_S + 600, **claims})}."


def shake_hands(broker: Broker, connection_id: int = 1) -> Stranger:
    stranger = Stranger(broker, connection_id)
    assert stranger.ask(m.SaslHandshakeRequest(mechanism="OAUTHBEARER"), 1).error_code == 0
    return stranger


def word(token: str) -> m.SaslAuthenticateRequest:
    return m.SaslAuthenticateRequest(auth_bytes=write_message(token, {}))


def send_token(stranger: Stranger, token: str) -> Any:
    return stranger.ask(word(token), 2)


def test_an_unsigned_token_is_accepted_without_a_callback_handler() -> None:
    stranger = shake_hands(start(static=UNSECURED))
    answer = send_token(stranger, unsigned())
    assert (answer.error_code, answer.auth_bytes, answer.session_lifetime_ms) == (0, b"", 600_000)
    assert stranger.context.principal == "User:alice"
    assert stranger.ask(m.MetadataRequest(topics=None), 9).brokers


def test_a_signed_token_is_accepted_for_as_long_as_it_lasts() -> None:
    stranger = shake_hands(Provider().start())
    assert send_token(stranger, signed()).session_lifetime_ms == 600_000
    stranger.now_ms += 600_000
    assert stranger.ask(m.MetadataRequest(topics=None), 9).brokers
    stranger.now_ms += 1
    (reply,) = stranger.send(m.MetadataRequest(topics=None), 9)
    assert reply.close


def test_connections_max_reauth_ms_shortens_the_session() -> None:
    stranger = shake_hands(Provider().start(**{"connections.max.reauth.ms": "1000"}))
    assert send_token(stranger, signed()).session_lifetime_ms == 1_000


def test_a_client_authenticates_again_with_its_next_token() -> None:
    stranger = shake_hands(Provider().start())
    send_token(stranger, signed())
    stranger.now_ms += 500_000
    assert stranger.ask(m.SaslHandshakeRequest(mechanism="OAUTHBEARER"), 1).error_code == 0
    assert send_token(stranger, signed(exp=NOW_S + 900)).session_lifetime_ms == 400_000


def test_a_refused_token_costs_the_connection_after_the_client_has_seen_the_error() -> None:
    stranger = shake_hands(Provider().start())
    answer = send_token(stranger, unsigned())
    assert (answer.error_code, answer.auth_bytes) == (0, b'{"status":"invalid_token"}')
    reply = stranger.refused(m.SaslAuthenticateRequest(auth_bytes=b"\x01"), 2)
    refused: Any = stranger.decode(reply, 36, 2)
    assert refused.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert refused.error_message == '{"status":"invalid_token"}'


@pytest.mark.parametrize("name", ["x" * 5_000, "\ud800"])
def test_a_principal_that_cannot_be_encoded_is_refused(name: str) -> None:
    broker = Provider().start()
    assert send_token(shake_hands(broker), signed(sub=name)).auth_bytes == b'{"status":"invalid_token"}'
    unsecured = start(static=UNSECURED)
    assert send_token(shake_hands(unsecured), unsigned(sub=name)).auth_bytes == b'{"status":"invalid_token"}'


# Keys


def test_an_unknown_key_holds_the_connection_until_the_keys_are_fetched() -> None:
    provider = Provider()
    broker = provider.start()
    stranger = shake_hands(broker)
    stranger.now_ms += key_cache.PERIOD_MS_MIN
    assert stranger.send(word(signed("two")), 2) == []
    broker.tick(stranger.now_ms)
    provider.answer = jwks("one", "two")
    provider.answer_fetch(stranger.now_ms)
    (reply,) = broker.take_replies()
    answer: Any = stranger.decode(reply, 36, 2)
    assert (answer.error_code, answer.auth_bytes) == (0, b"")
    assert stranger.context.principal == "User:alice"


def test_tokens_with_unknown_keys_do_not_cause_more_frequent_fetches() -> None:
    provider = Provider()
    broker = provider.start()
    now_ms = NOW_MS
    for number in range(200):
        now_ms += 500
        stranger = shake_hands(broker, number + 1)
        stranger.now_ms = now_ms
        stranger.send(word(signed(kid=f"nobody-{number}")), 2)
        broker.tick(now_ms)
        while provider.submitted:
            provider.answer_fetch(now_ms)
        broker.take_replies()
    assert provider.fetches <= 2 + 200 * 500 // key_cache.PERIOD_MS_MIN


def test_a_key_that_was_not_found_is_not_fetched_again_at_once() -> None:
    provider = Provider()
    broker = provider.start()
    stranger = shake_hands(broker)
    stranger.now_ms += 10_000
    stranger.send(word(signed(kid="nobody")), 2)
    broker.tick(stranger.now_ms)
    provider.answer_fetch(stranger.now_ms)
    (reply,) = broker.take_replies()
    refused: Any = stranger.decode(reply, 36, 2)
    assert refused.auth_bytes == b'{"status":"invalid_token"}'
    stranger.now_ms += 10_000
    assert send_token(stranger, signed(kid="nobody")).auth_bytes == b'{"status":"invalid_token"}'


def test_a_limited_number_of_connections_waits_for_keys() -> None:
    provider = Provider()
    broker = provider.start()
    held = [shake_hands(broker, number + 1).send(word(signed("two")), 2) for number in range(key_cache.HELD_MAX)]
    assert held == [[]] * key_cache.HELD_MAX
    assert send_token(shake_hands(broker, 999), signed("two")).auth_bytes == b'{"status":"invalid_token"}'
    broker.connection_closed(1, NOW_MS)
    assert shake_hands(broker, 1_000).send(word(signed("two")), 2) == []


def test_a_token_is_refused_if_the_identity_provider_does_not_respond_in_time() -> None:
    provider = Provider()
    broker = provider.start()
    stranger = shake_hands(broker)
    stranger.send(word(signed("two")), 2)
    broker.tick(NOW_MS + key_cache.PERIOD_MS_MIN)
    assert len(provider.submitted) == 1
    broker.tick(NOW_MS + key_cache.HELD_MS_MAX)
    (reply,) = broker.take_replies()
    refused: Any = stranger.decode(reply, 36, 2)
    assert refused.auth_bytes == b'{"status":"invalid_token"}'


def test_keys_are_fetched_again_every_refresh_ms_and_after_a_failure_with_a_back_off() -> None:
    provider = Provider()
    broker = provider.start()
    provider.answer = OSError("down")
    now_ms = NOW_MS + 3_600_000
    tries = []
    while not tries or now_ms < tries[0] + 20_000:
        broker.tick(now_ms)
        while provider.submitted:
            tries.append(now_ms)
            provider.answer_fetch(now_ms)
        now_ms += 50
    gaps = [later - earlier for earlier, later in pairwise(tries)]
    assert gaps == [100, 200, 400, 800, 1_600, 3_200]  # the next retry would exceed retry.backoff.max.ms, 10 s
    assert send_token(shake_hands(broker), signed(exp=NOW_S + 9_999)).auth_bytes == b""  # the old keys stay in use


def test_a_broker_whose_keys_cannot_be_fetched_does_not_start() -> None:
    provider = Provider()
    provider.answer = OSError("connection refused")
    with pytest.raises(InvalidConfig, match=r"no keys from https://identity.example.org/keys: connection refused"):
        provider.start()


@pytest.mark.parametrize(
    ("kind", "algorithm"),
    [
        ("RSA", "RS256"), ("RSA", "RS512"), ("RSA", "PS256"),
        ("P-256", "ES256"), ("P-384", "ES384"), ("P-521", "ES512"), ("OKP", "EdDSA"),
    ],
)  # fmt: skip
def test_every_algorithm_of_the_table_is_verified(kind: str, algorithm: str) -> None:
    key: Key
    if kind == "RSA":
        key = KEYS["one"]
    else:
        key = OKPKey.generate_key("Ed25519") if kind == "OKP" else ECKey.generate_key(kind)
    keys = SigningKeys.parse(json.dumps({"keys": [{**key.as_dict(private=False), "kid": "k"}]}).encode())
    head, body, signature = IdentityProvider.sign({"alg": algorithm}, b"{}", key).split(".")
    found = keys.select("k", algorithm)
    assert found is not None
    proof = decode_bytes(signature)
    assert is_signed_by(found, algorithm, f"{head}.{body}".encode(), proof)
    assert not is_signed_by(found, algorithm, f"{head}.{body}x".encode(), proof)
    assert not is_signed_by(found, algorithm, f"{head}.{body}".encode(), proof[:-1])


def test_keys_that_no_token_may_use_are_left_out() -> None:
    small = RSAKey.generate_key(1_024, auto_kid=False)
    entries = [
        {**small.as_dict(private=False), "kid": "small"},
        {"kty": "RSA", "kid": "large", "e": "AQAB", "n": encode_bytes(b"\xff" * 2_048)},
        {**KEYS["one"].as_dict(private=False), "kid": "slow", "e": encode_bytes(b"\xff" * 200)},
        {**OctKey.generate_key(256).as_dict(private=True), "kid": "shared"},
        {**KEYS["two"].as_dict(private=False), "kid": "encryption", "use": "enc"},
        {"kty": "EC", "kid": "off the curve", "crv": "P-256", "x": "AAAA", "y": "AAAA"},
        {"kty": "RSA", "kid": "nothing"},
        "text",
        {**KEYS["two"].as_dict(private=False), "kid": ["a list"]},
        {**KEYS["two"].as_dict(private=False), "kid": {"an": "object"}},
        {**KEYS["two"].as_dict(private=False), "kid": "good", "use": "sig"},
    ]
    keys = SigningKeys.parse(json.dumps({"keys": entries}).encode())
    assert (keys.count, len(keys.left_out)) == (1, 10)
    assert keys.select("good", "ES256") is not None
    assert keys.select("good", "RS256") is None


@pytest.mark.parametrize("data", [b"", b"x", b"[]", b"{}", b'{"keys": 7}', b"[" * 100_000, b"\xff"])
def test_data_that_is_not_a_json_web_key_set_is_refused(data: bytes) -> None:
    with pytest.raises(InvalidKeys):
        SigningKeys.parse(data)


# Cost


def longest_ms(act: Callable[[], object], times: int = 3) -> float:
    took = []
    for _ in range(times):
        began = time.perf_counter()
        act()
        took.append(time.perf_counter() - began)
    return min(took) * 1_000


@pytest.mark.parametrize(
    "text",
    [
        "a." * 200_000,
        f"{encode_bytes(b'[' * 300_000)}.{encode_bytes(b'{}')}.",
        f"{encode_part({'alg': 'none', 'a': [{}] * 3_000})}.e30.",
        f"{encode_part({'alg': 'none'})}.{encode_part({'scope': [[]] * 3_000})}.",
        f"{encode_bytes(b'1' * 48_000)}.e30.",
        f"{encode_part({'alg': 'none'})}.{encode_part({'a': [{}] * 3_000})}.",
        "=" * 400_000,
    ],
)
@pytest.mark.parametrize("settings", [UNSECURED, SIGNED])
def test_a_hostile_token_takes_a_few_milliseconds_at_most(settings: dict[str, str], text: str) -> None:
    provider = Provider()
    broker = start(static=settings, fetch_keys=provider.fetch, submit_fetch=provider.submitted.append)
    stranger = shake_hands(broker)

    def act() -> None:
        if stranger.send(word(text), 2) == []:
            broker.tick(stranger.now_ms + 200)
            broker.take_replies()
            shaken = shake_hands(broker, stranger.context.connection_id + 1)
            stranger.context = shaken.context

    assert longest_ms(act) < 20


@pytest.mark.parametrize(
    "data",
    [
        b"n,a=" + b"=" * 130_000,
        b"n,a=" + b"=2C" * 40_000 + b",\x01auth=Bearer a\x01\x01",
        b"n,a=" + b"x" * 130_000 + b"\x01",
        b"n,,\x01" + b"a=b\x01" * 32_000,
        b"n,,\x01" + b"a=b\x01" * 65 + b"auth=Bearer a\x01\x01",
        b"n,,\x01" + b"a=" + b"b" * 130_000,
        b"n,,\x01auth=" + b"a" * 130_000 + b"\x01\x01",
        b"n,,\x01auth=Bearer " + b"a" * 500_000 + b"\x01\x01",
    ],
)
def test_a_hostile_message_is_refused_within_20_ms(data: bytes) -> None:
    def act() -> None:
        with pytest.raises(MalformedMessage):
            read_message(data)

    assert longest_ms(act) < 20


@pytest.mark.parametrize("data", [b"", b"n", b"n,", b"n,,", b"n,,\x01", b"n,,\x01\x01", b"\x01", b"n,a=,\x01\x01"])
def test_a_message_without_a_token_is_malformed(data: bytes) -> None:
    with pytest.raises(MalformedMessage):
        read_message(data)


def test_a_token_whose_claims_are_too_long_is_malformed() -> None:
    with pytest.raises(MalformedToken, match=f"the limit is {UNTRUSTED_CHARS_MAX}"):
        decode_part(encode_part({"a": "x" * UNTRUSTED_CHARS_MAX}))


@pytest.mark.parametrize("part", ["", "AA", "e30=x", encode_bytes(b"[]"), encode_bytes(b'{"a":NaN}'), "é", "e30\n"])
def test_a_token_part_that_is_not_a_json_object_in_base64url_is_malformed(part: str) -> None:
    with pytest.raises(MalformedToken):
        decode_part(part)


def test_a_token_is_split_at_its_two_dots() -> None:
    assert split_token("a.b.") == ("a", "b", "")
    for token in ("a.b", "a.b.c.d", "..", "a..c", ""):
        with pytest.raises(MalformedToken):
            split_token(token)


def test_the_client_message_is_read_as_it_is_written() -> None:
    assert read_message(write_message("a.b.c", {"x": "1 2"})) == ("a.b.c", "", {"x": "1 2"})


# Settings


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({f"{PREFIX}.sasl.jaas.config": None}, "OAUTHBEARER needs …OAuthBearerLoginModule required;"),
        ({f"{PREFIX}.sasl.jaas.config": "x.PlainLoginModule required;"}, "OAUTHBEARER needs"),
        ({"sasl.oauthbearer.jwks.endpoint.url": None}, "needs sasl.oauthbearer.jwks.endpoint.url"),
        ({"sasl.oauthbearer.jwks.endpoint.url": "ftp://x/y"}, "must begin with one of http://, https://, file://"),
        ({"sasl.oauthbearer.jwks.endpoint.url": "https:///y"}, "has no host"),
        ({"sasl.oauthbearer.jwks.endpoint.url": "https://x:99999/y"}, "is not an address"),
        ({f"{PREFIX}.sasl.server.callback.handler.class": "com.example.Mine"}, "Mine is a Java class"),
        ({"sasl.oauthbearer.jwt.validator.class": "com.example.Mine"}, "Mine is a Java class"),
        ({"sasl.oauthbearer.jwks.endpoint.refresh.ms": "0"}, "refresh.ms is 0; it must be at least 1"),
        ({"sasl.oauthbearer.jwks.endpoint.retry.backoff.ms": "20000"}, "it must be at least 20000"),
        ({"sasl.oauthbearer.clock.skew.seconds": "-1"}, "clock.skew.seconds is -1"),
        ({f"{PREFIX}.sasl.oauthbearer.sub.claim.name": " "}, "sub.claim.name is blank"),
        ({"listener.name.sasl_plaintext.sasl.server.callback.handler.class": "x"}, "put the mechanism before"),
        ({"listener.name.sasl_plaintext.plain.sasl.oauthbearer.scope": "x"}, "is not supported"),
        ({"sasl.login.class": "x.Mine"}, "sasl.login.class is not supported"),
        (
            {
                f"{PREFIX}.sasl.server.callback.handler.class": None,
                f"{PREFIX}.sasl.jaas.config": f"{MODULE} unsecuredValidatorAllowableClockSkewMs=-1;",
            },
            "must be a number of at least 0",
        ),
    ],
)
def test_invalid_oauth_settings_are_refused_at_the_start(changes: dict[str, str | None], words: str) -> None:
    settings = {key: text for key, text in {**SIGNED, **changes}.items() if text is not None}
    with pytest.raises(InvalidConfig, match=words):
        BrokerConfig.of(log_dirs=["/data"], port=9092, settings=settings)


def test_signed_tokens_without_the_library_are_refused_at_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(InvalidConfig, match=r"pip install 'tailrace\[oauth\]'"):
        BrokerConfig.of(log_dirs=["/data"], port=9092, settings=SIGNED)
    BrokerConfig.of(log_dirs=["/data"], port=9092, settings=UNSECURED)


def test_an_issuer_or_audience_that_is_not_set_is_warned_about() -> None:
    config = BrokerConfig.of(log_dirs=["/data"], port=9092, settings=SIGNED)
    assert [warning.split()[2] for warning in config.warnings] == [
        "sasl.oauthbearer.expected.audience",
        "sasl.oauthbearer.expected.issuer",
    ]


def test_a_mechanisms_setting_overrides_the_listeners_and_the_brokers() -> None:
    url = "sasl.oauthbearer.jwks.endpoint.url"
    listener = "listener.name.sasl_plaintext"
    expected = []
    settings = dict(SIGNED)
    for key, text in ((url, "https://a/"), (f"{listener}.{url}", "https://b/"), (f"{PREFIX}.{url}", "https://c/")):
        settings[key] = text
        oauth = BrokerConfig.of(log_dirs=["/data"], port=9092, settings=settings).sasl["SASL_PLAINTEXT"].oauth
        assert oauth is not None
        assert oauth.jwks is not None
        expected.append(oauth.jwks.url)
    assert expected == ["https://a/", "https://b/", "https://c/"]
