"""TLS and SASL with Apache Kafka: every kind of listener, and the errors of refused clients."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tailrace.client.admin import NewTopic, create_topic
from tailrace.client.cluster.cluster_client import ClusterClient
from tailrace.client.errors import AuthenticationFailed, UnsupportedSecurity
from tailrace.client.offsets import latest_offsets
from tailrace.client.security.security import security_of
from tailrace.client.settings import ClientSettings
from tailrace.model.ids import TopicPartition
from tailrace.protocol.messages import AlterUserScramCredentialsRequest
from tests.support.filled_topics import numbered, put
from tests.support.kafka_broker import KafkaBroker, free_port
from tests.support.kafka_install import kafka_installation
from tests.support.source_rows import offsets, read

TLS = Path(__file__).parents[1] / "support" / "tls"
ITERATIONS = 4_096
pytestmark = pytest.mark.kafka


def jaas(kind: str, name: str, password: str) -> str:
    module = f"org.apache.kafka.common.security.{kind.lower()}.{kind}LoginModule"
    return f'{module} required username="{name}" password="{password}";'


class SecureKafka:
    """Start a broker with a listener of each kind; the plaintext one is used for the setup."""

    def __init__(self, directory: Path) -> None:
        self.ports = {name: free_port() for name in ("TLS", "MUTUAL", "SASL", "BOTH")}
        kinds = {"TLS": "SSL", "MUTUAL": "SSL", "SASL": "SASL_PLAINTEXT", "BOTH": "SASL_SSL"}
        broker = KafkaBroker(kafka_installation(), directory)
        listeners = [broker.properties["listeners"], *(f"{n}://127.0.0.1:{port}" for n, port in self.ports.items())]
        broker.properties |= {
            "listeners": ",".join(listeners),
            "listener.security.protocol.map": ",".join(
                [broker.properties["listener.security.protocol.map"], *(f"{n}:{kind}" for n, kind in kinds.items())]
            ),
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(TLS / "broker.pem"),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(TLS / "authority.pem"),
            "listener.name.mutual.ssl.client.auth": "required",
            "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
        }
        for listener in ("sasl", "both"):
            plain = jaas("Plain", "broker", "x").removesuffix(";") + ' user_alice="secret";'
            broker.properties[f"listener.name.{listener}.plain.sasl.jaas.config"] = plain
            for mechanism in ("scram-sha-256", "scram-sha-512"):
                scram = "org.apache.kafka.common.security.scram.ScramLoginModule required;"
                broker.properties[f"listener.name.{listener}.{mechanism}.sasl.jaas.config"] = scram
        self.broker = broker

    def at(self, listener: str) -> str:
        return self.broker.bootstrap if listener == "PLAINTEXT" else f"127.0.0.1:{self.ports[listener]}"

    def add_scram_user(self, name: str, password: str) -> None:
        salt = b"0123456789abcdef"
        with ClusterClient(self.broker.bootstrap) as cluster:
            for number, digest in ((1, "sha256"), (2, "sha512")):
                one = AlterUserScramCredentialsRequest.ScramCredentialUpsertion(
                    name=name,
                    mechanism=number,
                    iterations=ITERATIONS,
                    salt=salt,
                    salted_password=hashlib.pbkdf2_hmac(digest, password.encode(), salt, ITERATIONS),
                )
                cluster.change(AlterUserScramCredentialsRequest(upsertions=[one]), _check)


def _check(answer: Any) -> None:
    assert [(one.error_code, one.error_message) for one in answer.results] == [(0, None)]


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureKafka]:
    secure = SecureKafka(tmp_path_factory.mktemp("kafka"))
    with secure.broker:
        secure.add_scram_user("bob", "sésame, ouvre-toi=1")
        with ClusterClient(secure.broker.bootstrap) as cluster:
            create_topic(cluster, NewTopic(name="t", partitions=1, replication_factor=1))
        put(secure.broker.bootstrap, "t", 0, numbered(20))
        yield secure


TRUST = {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(TLS / "authority.pem")}
PEM = (TLS / "client.pem").read_text()
KEY, CHAIN = PEM[: PEM.index("-----BEGIN CERTIFICATE")], PEM[PEM.index("-----BEGIN CERTIFICATE") :]
ALICE = {"sasl.mechanism": "PLAIN", "sasl.jaas.config": jaas("Plain", "alice", "secret")}


def bob(digits: int, password: str = "sésame, ouvre-toi=1") -> dict[str, str]:
    return {"sasl.mechanism": f"SCRAM-SHA-{digits}", "sasl.jaas.config": jaas("Scram", "bob", password)}


def stores(ending: str) -> dict[str, str]:
    return {
        "security.protocol": "SSL",
        "ssl.truststore.location": str(TLS / "stores" / f"trust.{ending}"),
        "ssl.truststore.password": "secret1",
        "ssl.keystore.location": str(TLS / "stores" / f"client.{ending}"),
        "ssl.keystore.password": "secret1",
    }


WAYS = {
    "JKS stores": ("MUTUAL", stores("jks")),
    "PKCS12 stores": ("MUTUAL", stores("p12")),
    "tls": ("TLS", {"security.protocol": "SSL", **TRUST}),
    "authority as text": (
        "TLS",
        {"security.protocol": "SSL", "ssl.truststore.certificates": (TLS / "authority.pem").read_text()},
    ),
    "certificate of our own": (
        "MUTUAL",
        {"security.protocol": "SSL", **TRUST, "ssl.keystore.location": str(TLS / "client.pem")},
    ),
    "certificate as text": (
        "MUTUAL",
        {"security.protocol": "SSL", **TRUST, "ssl.keystore.certificate.chain": CHAIN, "ssl.keystore.key": KEY},
    ),
    "locked key": (
        "MUTUAL",
        {
            "security.protocol": "SSL", **TRUST,
            "ssl.keystore.location": str(TLS / "client-locked.pem"), "ssl.key.password": "opens",
        },
    ),
    "plain": ("SASL", {"security.protocol": "SASL_PLAINTEXT", **ALICE}),
    "scram 256": ("SASL", {"security.protocol": "SASL_PLAINTEXT", **bob(256)}),
    "scram 512": ("SASL", {"security.protocol": "SASL_PLAINTEXT", **bob(512)}),
    "plain over tls": ("BOTH", {"security.protocol": "SASL_SSL", **TRUST, **ALICE}),
    "scram over tls": ("BOTH", {"security.protocol": "SASL_SSL", **TRUST, **bob(512)}),
}  # fmt: skip


@pytest.mark.parametrize("way", WAYS)
def test_the_source_reads_through_every_kind_of_listener(kafka: SecureKafka, way: str) -> None:
    listener, settings = WAYS[way]
    options = {f"kafka.{name}": value for name, value in settings.items()}
    assert offsets(read({**options, "kafka.bootstrap.servers": kafka.at(listener), "subscribe": "t"})) == list(
        range(20)
    )


def ask(bootstrap: str, settings: dict[str, str]) -> object:
    with ClusterClient(bootstrap, ClientSettings(security=security_of(settings), total_timeout_ms=60_000)) as cluster:
        return latest_offsets(cluster, [TopicPartition("t", 0)])


@pytest.mark.parametrize(
    ("listener", "settings", "error", "words"),
    [
        ("SASL", {"security.protocol": "SASL_PLAINTEXT", **bob(256, "wrong")}, AuthenticationFailed, "'bob'"),
        (
            "BOTH",
            {"security.protocol": "SASL_SSL", **TRUST, **ALICE, "sasl.jaas.config": jaas("Plain", "alice", "x")},
            AuthenticationFailed,
            "'alice': Authentication failed: Invalid username or password",
        ),
        (
            "TLS",
            {"security.protocol": "SSL", "ssl.truststore.location": str(TLS / "stranger.pem")},
            UnsupportedSecurity,
            "certificate of .* is not trusted",
        ),
        ("TLS", {}, UnsupportedSecurity, "uses TLS: set security.protocol to SSL or SASL_SSL"),
        (
            "TLS",
            {"security.protocol": "SSL", "ssl.truststore.location": "/nope"},
            UnsupportedSecurity,
            "/nope: No such file or directory",
        ),
        (
            "MUTUAL",
            {"security.protocol": "SSL", **TRUST},
            UnsupportedSecurity,
            "refuses the TLS connection: .*certificate",
        ),
        ("PLAINTEXT", {"security.protocol": "SSL", **TRUST}, UnsupportedSecurity, "does not use TLS"),
        ("PLAINTEXT", {"security.protocol": "SASL_PLAINTEXT", **ALICE}, UnsupportedSecurity, "does not use SASL"),
        ("SASL", {}, UnsupportedSecurity, "requires SASL: .* SASL_PLAINTEXT, .* one of PLAIN, SCRAM-SHA-256"),
        ("BOTH", {"security.protocol": "SSL", **TRUST}, UnsupportedSecurity, "requires SASL: .* SASL_SSL"),
    ],
    ids=[
        "wrong scram password",
        "wrong plain password",
        "a stranger's certificate",
        "no tls",
        "no file",
        "no identity",
        "tls to a plain listener",
        "sasl to a plain listener",
        "no sasl",
        "no sasl over tls",
    ],
)
def test_a_refused_client_gets_the_reason(
    kafka: SecureKafka, listener: str, settings: dict[str, str], error: type[Exception], words: str
) -> None:
    begun = time.monotonic()
    with pytest.raises(error, match=words):
        ask(kafka.at(listener), settings)
    assert time.monotonic() - begun < 10
