"""SASL at the broker: who is let in, what is refused and when, and sessions that end."""

from __future__ import annotations

import base64
import hashlib
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tailrace.broker.broker import Broker
from tailrace.broker.config.broker_config import BrokerConfig
from tailrace.broker.requests.request_context import Reply
from tailrace.client.security.sasl import exchange_of
from tailrace.client.security.security import Sasl
from tailrace.metadata.decisions.scram_credentials import first_credential
from tailrace.model.errors import ErrorCode
from tailrace.model.security import scram
from tailrace.model.topic_config import InvalidConfig
from tailrace.node.serving import broker_builder
from tailrace.protocol import messages as m
from tailrace.protocol.headers import RequestHeader, write_request_header
from tailrace.waiting.chore import run_now
from tests.support.memory_node import NOW_MS, Client, start

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
SETTINGS = {
    "listeners": "SASL_PLAINTEXT://127.0.0.1:9092",
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
    "listener.name.sasl_plaintext.plain.sasl.jaas.config": f'{PLAIN} username="x" password="y" user_alice="secret";',
}
DELAY_MS = 100
SALT = b"0123456789"


class Stranger(Client):
    """A client that is not authenticated yet."""

    def __init__(self, broker: Broker, connection_id: int = 1) -> None:
        super().__init__(broker, connection_id=connection_id)
        self.context.listener = "SASL_PLAINTEXT"
        self.context.is_authenticated = False

    def send(self, request: Any, version: int) -> list[Reply]:
        header = write_request_header(RequestHeader(request.SCHEMA.api_key, version, 1, "test"))
        return self.send_bare(header + request.encode(version))

    def send_bare(self, frame: bytes) -> list[Reply]:
        self.broker.handle_guarded(memoryview(bytearray(frame)), self.context, self.now_ms)
        return list(self.broker.take_replies())

    def refused(self, request: Any, version: int) -> Reply:
        """Return the reply to a request that is refused after the delay."""
        assert self.send(request, version) == []
        self.broker.tick(self.now_ms + DELAY_MS - 1)
        assert self.broker.take_replies() == []
        self.broker.tick(self.now_ms + DELAY_MS)
        (reply,) = self.broker.take_replies()
        assert reply.close
        return reply

    def log_in(self, mechanism: str, name: str, password: str) -> m.SaslAuthenticateResponse:
        assert self.ask(m.SaslHandshakeRequest(mechanism=mechanism), 1).error_code == 0
        exchange = exchange_of(Sasl(mechanism=mechanism, username=name, password=password))
        words = next(exchange)
        while True:
            answer: m.SaslAuthenticateResponse = self.ask(m.SaslAuthenticateRequest(auth_bytes=words), 2)
            assert answer.error_code == 0
            try:
                words = exchange.send(bytes(answer.auth_bytes))
            except StopIteration:
                return answer


@pytest.fixture
def broker() -> Broker:
    return start(static=SETTINGS)


@pytest.fixture
def stranger(broker: Broker) -> Stranger:
    return Stranger(broker)


def add_scram(broker: Broker, name: str, password: str) -> None:
    upsertion = m.AlterUserScramCredentialsRequest.ScramCredentialUpsertion
    for number, digest in ((1, "sha256"), (2, "sha512")):
        salted = hashlib.pbkdf2_hmac(digest, password.encode(), SALT, 4_096)
        one = upsertion(name=name, mechanism=number, iterations=4_096, salt=SALT, salted_password=salted)
        answer = Client(broker, connection_id=99).ask(m.AlterUserScramCredentialsRequest(upsertions=[one]), 0)
        assert [result.error_code for result in answer.results] == [0]


def test_plain_authenticates_a_client_with_the_right_password(stranger: Stranger) -> None:
    assert stranger.ask(m.ApiVersionsRequest(), 0).error_code == 0
    assert stranger.log_in("PLAIN", "alice", "secret").session_lifetime_ms == 0
    assert (stranger.context.principal, stranger.context.is_authenticated) == ("User:alice", True)
    assert stranger.ask(m.MetadataRequest(topics=None), 9).brokers


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_scram_authenticates_client_and_broker(broker: Broker, mechanism: str) -> None:
    add_scram(broker, "b=o,b", "pässword")
    stranger = Stranger(broker)
    stranger.log_in(mechanism, "b=o,b", "pässword")  # the client's exchange checks the broker's proof
    assert stranger.context.principal == "User:b=o,b"


@pytest.mark.parametrize(
    "token",
    [b"", b"alice", b"\0alice\0wrong", b"\0bob\0secret", b"\0\0x", b"\0alice\0", b"bob\0alice\0secret", b"\0" * 9],
)
def test_wrong_plain_credentials_are_refused_after_the_delay(stranger: Stranger, token: bytes) -> None:
    stranger.ask(m.SaslHandshakeRequest(mechanism="PLAIN"), 1)
    reply = stranger.refused(m.SaslAuthenticateRequest(auth_bytes=token), 2)
    answer = stranger.decode(reply, 36, 2)
    assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert answer.error_message
    assert not stranger.context.is_authenticated


@pytest.mark.parametrize(
    "first", [b"n,,n=bob,r=x", b"n,,n=nobody,r=x", b"y,,n=bob,r=x", b"n,a=root,n=bob,r=x", b"\xff"]
)
def test_scram_errors_do_not_reveal_if_a_user_exists(broker: Broker, first: bytes) -> None:
    add_scram(broker, "bob", "x")
    stranger = Stranger(broker)
    stranger.ask(m.SaslHandshakeRequest(mechanism="SCRAM-SHA-256"), 1)
    answer: Any
    if first in (b"n,,n=bob,r=x", b"n,,n=nobody,r=x"):
        challenge = bytes(stranger.ask(m.SaslAuthenticateRequest(auth_bytes=first), 2).auth_bytes)
        nonce = challenge.split(b",")[0]
        proof = b"c=biws," + nonce + b",p=" + base64.b64encode(bytes(32))
        answer = stranger.decode(stranger.refused(m.SaslAuthenticateRequest(auth_bytes=proof), 2), 36, 2)
    else:
        answer = stranger.decode(stranger.refused(m.SaslAuthenticateRequest(auth_bytes=first), 2), 36, 2)
    assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert "invalid credentials" in answer.error_message or "different from username" in answer.error_message


def test_an_unsupported_mechanism_is_refused_with_the_list_of_enabled_ones(stranger: Stranger) -> None:
    reply = stranger.refused(m.SaslHandshakeRequest(mechanism="OAUTHBEARER"), 1)
    answer = stranger.decode(reply, 17, 1)
    assert answer.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM
    assert answer.mechanisms == ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]


@pytest.mark.parametrize("request_", [m.MetadataRequest(topics=None), m.SaslAuthenticateRequest(auth_bytes=b"\0a\0b")])
def test_a_request_before_the_handshake_closes_the_connection(stranger: Stranger, request_: Any) -> None:
    assert stranger.refused(request_, 1).parts is None


def test_another_request_during_authentication_gets_illegal_sasl_state(stranger: Stranger) -> None:
    stranger.ask(m.SaslHandshakeRequest(mechanism="PLAIN"), 1)
    reply = stranger.refused(m.ListGroupsRequest(), 1)
    assert stranger.decode(reply, 16, 1).error_code == ErrorCode.ILLEGAL_SASL_STATE


def test_a_second_api_versions_before_authentication_closes_the_connection(stranger: Stranger) -> None:
    assert stranger.ask(m.ApiVersionsRequest(), 0).error_code == 0
    assert stranger.refused(m.ApiVersionsRequest(), 0).parts is None


def test_a_malformed_or_too_large_frame_before_authentication_closes_the_connection(broker: Broker) -> None:
    (reply,) = Stranger(broker).send_bare(b"\x00")
    assert reply.close
    assert reply.parts is None
    stranger = Stranger(broker, 2)
    stranger.ask(m.SaslHandshakeRequest(mechanism="PLAIN"), 1)
    assert stranger.refused(m.SaslAuthenticateRequest(auth_bytes=bytes(524_289)), 1).parts is None


def test_after_handshake_version_0_bare_tokens_authenticate(stranger: Stranger) -> None:
    assert stranger.ask(m.SaslHandshakeRequest(mechanism="PLAIN"), 0).error_code == 0
    (reply,) = stranger.send_bare(b"\0alice\0secret")
    assert reply.parts == [b""]
    assert stranger.context.principal == "User:alice"


def test_a_delayed_refusal_is_dropped_when_the_client_disconnects(stranger: Stranger) -> None:
    stranger.send(m.SaslHandshakeRequest(mechanism="GSSAPI"), 1)
    stranger.broker.connection_closed(1, NOW_MS)
    stranger.broker.tick(stranger.now_ms + DELAY_MS)
    assert stranger.broker.take_replies() == []


@pytest.fixture
def timed() -> Stranger:
    return Stranger(start(static={**SETTINGS, "listener.name.sasl_plaintext.plain.connections.max.reauth.ms": "5000"}))


def test_a_request_after_the_session_lifetime_closes_the_connection(timed: Stranger) -> None:
    assert timed.log_in("PLAIN", "alice", "secret").session_lifetime_ms == 5_000
    timed.now_ms += 5_000
    assert timed.ask(m.ListGroupsRequest(), 1).error_code == 0
    timed.now_ms += 1
    (reply,) = timed.send(m.ListGroupsRequest(), 1)
    assert reply.close


def test_re_authentication_restarts_the_session_lifetime(timed: Stranger) -> None:
    timed.log_in("PLAIN", "alice", "secret")
    timed.now_ms += 4_900
    assert timed.log_in("PLAIN", "alice", "secret").session_lifetime_ms == 5_000
    timed.now_ms += 4_900
    assert timed.ask(m.ListGroupsRequest(), 1).error_code == 0


def test_re_authentication_as_another_user_or_by_another_mechanism_is_refused(timed: Stranger) -> None:
    add_scram(timed.broker, "bob", "x")
    timed.log_in("PLAIN", "alice", "secret")
    assert timed.ask(m.SaslHandshakeRequest(mechanism="SCRAM-SHA-256"), 1).error_code == 0
    timed.refused(m.SaslAuthenticateRequest(auth_bytes=b"n,,n=bob,r=x"), 2)
    bob = Stranger(start(static={**SETTINGS, "connections.max.reauth.ms": "9"}), 2)
    add_scram(bob.broker, "bob", "x")
    add_scram(bob.broker, "eve", "x")
    bob.log_in("SCRAM-SHA-256", "bob", "x")
    with pytest.raises(ValueError, match="not enough values"):
        bob.log_in("SCRAM-SHA-256", "eve", "x")
    assert bob.context.principal == "User:bob"


def test_a_second_re_authentication_within_a_second_gets_illegal_sasl_state(timed: Stranger) -> None:
    timed.log_in("PLAIN", "alice", "secret")
    timed.log_in("PLAIN", "alice", "secret")
    assert timed.ask(m.SaslHandshakeRequest(mechanism="PLAIN"), 1).error_code == ErrorCode.ILLEGAL_SASL_STATE


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"sasl.enabled.mechanisms": "GSSAPI"}, "GSSAPI of listener SASL_PLAINTEXT is not supported"),
        ({"sasl.enabled.mechanisms": "OAUTHBEARER,PLAIN"}, "OAUTHBEARER"),
        ({"sasl.enabled.mechanisms": ""}, "needs at least one"),
        ({"listener.name.sasl_plaintext.plain.sasl.jaas.config": "nonsense"}, "PLAIN needs"),
        ({"listener.name.sasl_plaintext.gssapi.sasl.jaas.config": "x"}, "not supported"),
    ],
)
def test_invalid_sasl_settings_are_refused_at_the_start(change: dict[str, str], why: str) -> None:
    with pytest.raises(InvalidConfig, match=why):
        BrokerConfig.of(log_dirs=["/data"], port=0, settings={**SETTINGS, **change})


def test_a_new_cluster_has_the_scram_credentials_it_was_formatted_with(tmp_path: Path) -> None:
    settings = {**SETTINGS, "listeners": "SASL_PLAINTEXT://127.0.0.1:0", "log.dirs": str(tmp_path)}
    build = broker_builder(
        BrokerConfig(settings),
        credentials=["SCRAM-SHA-512=[name=ann,password=x y]", "SCRAM-SHA-256=[name=ben,password=z]"],
    )
    broker = build(_Nowhere())
    Stranger(broker).log_in("SCRAM-SHA-512", "ann", "x y")
    Stranger(broker, 2).log_in("SCRAM-SHA-256", "ben", "z")
    broker.close(Stranger(broker).now_ms)


class _Nowhere:
    """The server_functions of a broker without a server."""

    endpoints: tuple[Any, ...] = ()
    advertised: tuple[Any, ...] = ()

    @property
    def submit(self) -> Any:
        return partial(run_now, now_ms=0)

    def is_turn_over(self) -> bool:
        return False

    def call_soon(self, function: Any) -> bool:
        return False


@pytest.mark.parametrize(
    "text",
    [
        "",
        "PLAIN=[name=a,password=b]",
        "SCRAM-SHA-512=name=a",
        "SCRAM-SHA-512=[name=a]",
        "SCRAM-SHA-512=[name=a,password=b,iterations=1]",
        "SCRAM-SHA-512=[name=a,password=b,colour=red]",
    ],
)
def test_an_invalid_scram_credential_is_refused(text: str) -> None:
    with pytest.raises(InvalidConfig):
        first_credential(text, b"salt")


def test_random_frames_neither_authenticate_nor_raise(broker: Broker) -> None:
    dice = Random(7)
    tokens = [b"\0alice\0wrong", b"n,,n=alice,r=abc", b"c=biws,r=abc,p=AAAA", b"", b"\xff" * 40]
    seeds: list[tuple[Any, int]] = [
        (m.ApiVersionsRequest(client_software_name="a", client_software_version="1"), 3),
        *((m.SaslHandshakeRequest(mechanism=name), 1) for name in ("PLAIN", "SCRAM-SHA-512", "x")),
        *((m.SaslAuthenticateRequest(auth_bytes=token), 2) for token in tokens),
        (m.MetadataRequest(topics=None), 9),
    ]
    frames = [
        write_request_header(RequestHeader(one.SCHEMA.api_key, version, 1, "x")) + one.encode(version)
        for one, version in seeds
    ]
    for number in range(400):
        stranger = Stranger(broker, connection_id=number + 10)
        for _ in range(4):
            frame = bytearray(dice.choice(frames))
            for _ in range(dice.choice((0, 0, 1, 3))):
                frame[dice.randrange(len(frame))] = dice.randrange(256)
            del frame[dice.choice((len(frame), dice.randrange(len(frame) + 1))) :]
            if any(reply.close for reply in stranger.send_bare(bytes(frame))):
                break
        assert not stranger.context.is_authenticated
        broker.connection_closed(stranger.context.connection_id, NOW_MS)


def scram_challenge(stranger: Stranger, name: str) -> dict[str, str]:
    stranger.ask(m.SaslHandshakeRequest(mechanism="SCRAM-SHA-256"), 1)
    answer = stranger.ask(m.SaslAuthenticateRequest(auth_bytes=f"n,,n={name},r=abc".encode()), 2)
    return dict(part.split("=", 1) for part in bytes(answer.auth_bytes).decode().split(","))


def scram_refusal(stranger: Stranger, nonce: str) -> tuple[int, str | None, bytes]:
    proof = f"c=biws,r={nonce},p={base64.b64encode(bytes(32)).decode()}".encode()
    answer: Any = stranger.decode(stranger.refused(m.SaslAuthenticateRequest(auth_bytes=proof), 2), 36, 2)
    return answer.error_code, answer.error_message, bytes(answer.auth_bytes)


def test_scram_challenges_an_unknown_user_like_a_known_one(broker: Broker) -> None:
    add_scram(broker, "bob", "x")
    known, unknown = (scram_challenge(Stranger(broker), name) for name in ("bob", "nobody"))
    assert known["i"] == unknown["i"] == "4096"
    salts = [base64.b64decode(one["s"]) for one in (known, unknown)]
    assert len(salts[0]) == len(salts[1])
    assert salts[0] != salts[1]
    refusals = []
    for name in ("bob", "nobody"):
        stranger = Stranger(broker)
        refusals.append(scram_refusal(stranger, scram_challenge(stranger, name)["r"]))
    assert refusals[0] == refusals[1]


def test_an_unknown_user_gets_the_same_salt_each_time_and_others_get_another(broker: Broker) -> None:
    add_scram(broker, "bob", "x")
    salts = [scram_challenge(Stranger(broker), name)["s"] for name in ("eve", "eve", "mallory")]
    assert salts[0] == salts[1] != salts[2]


@pytest.mark.parametrize("binding", ["eSws", "biwsLA==", "", "cD10bHMtdW5pcXVlLCw="])
def test_scram_refuses_a_channel_binding_that_is_not_the_header_of_the_first_message(
    broker: Broker, binding: str
) -> None:
    add_scram(broker, "bob", "x")
    for sent, is_accepted in (("biws", True), (binding, False)):
        stranger = Stranger(broker)
        first = scram_challenge(stranger, "bob")
        salted = scram.salted_password("sha256", "x", base64.b64decode(first["s"]), int(first["i"]))
        bare = f"c={sent},r={first['r']}"
        message = f"n=bob,r=abc,r={first['r']},s={first['s']},i={first['i']},{bare}".encode()
        key = scram.client_key("sha256", salted)
        proof = scram.exclusive_or(key, scram.signature("sha256", scram.stored_key("sha256", key), message))
        final = m.SaslAuthenticateRequest(auth_bytes=f"{bare},p={base64.b64encode(proof).decode()}".encode())
        if is_accepted:
            assert stranger.ask(final, 2).error_code == 0
        else:
            answer: Any = stranger.decode(stranger.refused(final, 2), 36, 2)
            assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
