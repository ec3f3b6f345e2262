"""A broker with a listener of each security protocol: our own client, and our own connections to other nodes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import tailrace
from tailrace.broker.config.broker_config import BrokerConfig
from tailrace.cli.main import main
from tailrace.client.cluster.cluster_client import ClusterClient
from tailrace.client.errors import AuthenticationFailed, UnsupportedSecurity
from tailrace.client.security.security import Security, security_of
from tailrace.client.settings import ClientSettings
from tailrace.model.topic_config import InvalidConfig
from tailrace.protocol.messages import DescribeClusterRequest
from tailrace.server.loop.poll import open_poll
from tailrace.server.peers.outgoing_security import OutgoingSecurity, outgoing_security
from tailrace.server.peers.peers import Peers
from tailrace.spark.source.errors import Unreadable
from tailrace.waiting.outbox import Failure, Outbox, Peer
from tests.support.secured import STORES, TLS, jaas
from tests.support.source_rows import read

LISTENERS = {"PLAINTEXT": "PLAINTEXT", "TLS": "SSL", "MUTUAL": "SSL", "SASL": "SASL_PLAINTEXT", "BOTH": "SASL_SSL"}
SETTINGS = {
    **STORES,
    "listeners": ",".join(f"{name}://127.0.0.1:0" for name in LISTENERS),
    "listener.security.protocol.map": ",".join(f"{name}:{protocol}" for name, protocol in LISTENERS.items()),
    "listener.name.mutual.ssl.client.auth": "required",
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
    "listener.name.sasl.plain.sasl.jaas.config": jaas("Plain", "x", "x", alice="secret"),
    "listener.name.both.plain.sasl.jaas.config": jaas("Plain", "x", "x", alice="secret"),
    "connection.failed.authentication.delay.ms": "10",
}
TRUST = {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(TLS / "authority.pem")}
IDENTITY = {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(TLS / "client.pem")}


def plain(password: str = "secret") -> dict[str, str]:
    return {"sasl.mechanism": "PLAIN", "sasl.jaas.config": jaas("Plain", "alice", password)}


WAYS: dict[str, dict[str, str]] = {
    "TLS": {"security.protocol": "SSL", **TRUST},
    "MUTUAL": {"security.protocol": "SSL", **TRUST, **IDENTITY},
    "SASL": {"security.protocol": "SASL_PLAINTEXT", **plain()},
    "BOTH": {"security.protocol": "SASL_SSL", **TRUST, **plain()},
}


@pytest.fixture(scope="module")
def broker() -> Iterator[tailrace.Broker]:
    with tailrace.Broker(config=SETTINGS) as running:
        yield running


def port_of(broker: tailrace.Broker, listener: str) -> int:
    return broker._running().port(listener)


def client(broker: tailrace.Broker, listener: str, way: dict[str, str], patience_ms: int = 60_000) -> ClusterClient:
    settings = ClientSettings(security=security_of(way), total_timeout_ms=patience_ms)
    return ClusterClient(f"127.0.0.1:{port_of(broker, listener)}", settings)


@pytest.mark.parametrize("listener", WAYS)
def test_our_client_connects_to_every_listener(broker: tailrace.Broker, listener: str) -> None:
    with client(broker, listener, WAYS[listener]) as cluster:
        assert cluster.ask_any(DescribeClusterRequest()).error_code == 0


UNTRUSTING = {"security.protocol": "SSL"}  # without the CA that signed the broker's certificate
REFUSALS = [
    ("PLAINTEXT", WAYS["TLS"], "does not use TLS: set security.protocol to PLAINTEXT or SASL_PLAINTEXT"),
    ("PLAINTEXT", WAYS["SASL"], "does not use SASL: set security.protocol to PLAINTEXT"),
    ("PLAINTEXT", WAYS["BOTH"], "does not use TLS: set security.protocol to SASL_PLAINTEXT"),
    ("TLS", {}, "uses TLS: set security.protocol to SSL or SASL_SSL"),
    ("TLS", WAYS["SASL"], "uses TLS: set security.protocol to SASL_SSL"),
    ("TLS", WAYS["BOTH"], "does not use SASL"),
    ("TLS", UNTRUSTING, "the certificate of .* is not trusted: self-signed certificate"),
    ("MUTUAL", {}, "uses TLS"),
    ("MUTUAL", WAYS["TLS"], "refuses the TLS connection: .*certificate required.*ssl.keystore.location"),
    ("SASL", {}, "requires SASL: set security.protocol to SASL_PLAINTEXT, .* one of PLAIN, SCRAM-SHA-256"),
    ("SASL", WAYS["TLS"], "does not use TLS"),
    ("SASL", WAYS["BOTH"], "does not use TLS: set security.protocol to SASL_PLAINTEXT"),
    ("BOTH", {}, "uses TLS"),
    ("BOTH", WAYS["TLS"], "requires SASL: set security.protocol to SASL_SSL, .* one of PLAIN, SCRAM-SHA-256"),
    ("BOTH", WAYS["SASL"], "uses TLS: set security.protocol to SASL_SSL"),
]


@pytest.mark.parametrize(("listener", "way", "words"), REFUSALS)
def test_a_client_with_wrong_security_settings_gets_the_listeners_protocol_at_once(
    broker: tailrace.Broker, listener: str, way: dict[str, str], words: str
) -> None:
    begun = time.monotonic()
    with pytest.raises(UnsupportedSecurity, match=words), client(broker, listener, way) as cluster:
        cluster.ask_any(DescribeClusterRequest())
    assert time.monotonic() - begun < 10  # the client would retry for a minute


@pytest.mark.parametrize(("listener", "words"), [("TLS", "uses TLS"), ("SASL", "requires SASL")])
def test_a_command_names_the_security_protocol_of_the_port(
    broker: tailrace.Broker, capfd: pytest.CaptureFixture[str], listener: str, words: str
) -> None:
    begun = time.monotonic()
    assert main(["topics", "list", "--bootstrap", f"127.0.0.1:{port_of(broker, listener)}"]) == 2
    assert time.monotonic() - begun < 10
    complaint = capfd.readouterr().err
    assert words in complaint
    assert "give the security settings with --command-config FILE" in complaint


@pytest.mark.parametrize(("listener", "words"), [("TLS", "uses TLS"), ("SASL", "requires SASL")])
def test_the_spark_source_names_the_security_protocol_of_the_port(
    broker: tailrace.Broker, listener: str, words: str
) -> None:
    begun = time.monotonic()
    with pytest.raises(Unreadable, match=words):
        read({"kafka.bootstrap.servers": f"127.0.0.1:{port_of(broker, listener)}", "subscribe": "t"})
    assert time.monotonic() - begun < 10


def test_a_wrong_password_is_reported(broker: tailrace.Broker) -> None:
    with (
        pytest.raises(AuthenticationFailed, match="Invalid username or password"),
        client(broker, "BOTH", {**WAYS["BOTH"], **plain("wrong")}) as cluster,
    ):
        cluster.ask_any(DescribeClusterRequest())


class Network:
    """Connections to other nodes, with their own poll."""

    def __init__(self, security: Security) -> None:
        self.poll = open_poll()
        self.outbox = Outbox()
        self.peers = Peers(self.poll, self.outbox, security=OutgoingSecurity(brokers=security))
        self.reported: list[Any] = []

    def ask(self, peer: Peer) -> Any:
        asked = len(self.reported)
        self.outbox.send(
            peer,
            DescribeClusterRequest(),
            lambda response, now_ms: self.reported.append(response),
            lambda failure, now_ms: self.reported.append(failure),
        )
        self.run(lambda: len(self.reported) > asked)
        return self.reported[-1]

    def run(self, until: Callable[[], bool]) -> None:
        deadline = time.monotonic() + 60
        while not until():
            assert time.monotonic() < deadline
            self.peers.send_waiting()
            for descriptor, mask in self.poll.poll(0.01):
                self.peers.serve(descriptor, mask, 0)
            self.peers.tick(0)

    def close(self) -> None:
        self.peers.close()
        self.poll.close()


@pytest.mark.parametrize("listener", WAYS)
def test_other_nodes_are_reached_through_every_listener(broker: tailrace.Broker, listener: str) -> None:
    network = Network(security_of(WAYS[listener]))
    peer = Peer("test", "127.0.0.1", port_of(broker, listener))
    assert [network.ask(peer).error_code for _ in range(3)] == [0, 0, 0]
    network.close()


@pytest.mark.parametrize(
    ("listener", "way"),
    [
        ("TLS", {}),
        ("PLAINTEXT", WAYS["TLS"]),
        ("TLS", {"security.protocol": "SSL"}),
        ("MUTUAL", WAYS["TLS"]),
        ("SASL", {**WAYS["SASL"], **plain("wrong")}),
        ("PLAINTEXT", WAYS["SASL"]),
    ],
)
def test_connections_to_other_nodes_with_wrong_settings_fail(
    broker: tailrace.Broker, listener: str, way: dict[str, str]
) -> None:
    network = Network(security_of(way))
    assert network.ask(Peer("test", "127.0.0.1", port_of(broker, listener))) in (Failure.UNREACHABLE, Failure.LOST)
    network.close()


def test_a_connection_reauthenticates_when_its_session_expires() -> None:
    with tailrace.Broker(config={**SETTINGS, "connections.max.reauth.ms": "2000"}) as broker:
        network = Network(security_of(WAYS["SASL"]))
        peer = Peer("test", "127.0.0.1", port_of(broker, "SASL"))
        assert network.ask(peer).error_code == 0
        line = network.peers._lines[peer]
        first = line.connection
        network.run(lambda: network.ask(peer).error_code == 0 and line.connection is not first)
        assert all(getattr(one, "error_code", None) == 0 for one in network.reported)
        network.close()


BELOW = {
    "process.roles": "broker",
    "controller.quorum.bootstrap.servers": "c1:9093",
    "controller.listener.names": "CONTROLLER",
    "listeners": "INSIDE://127.0.0.1:0",
    "inter.broker.listener.name": "INSIDE",
    "log.dirs": "/data",
    **STORES,
}


def test_a_broker_connects_to_controllers_and_brokers_by_their_listeners_settings() -> None:
    config = BrokerConfig(
        {
            **BELOW,
            "listener.security.protocol.map": "CONTROLLER:SASL_SSL,INSIDE:SASL_PLAINTEXT",
            "sasl.enabled.mechanisms": "SCRAM-SHA-512",
            "sasl.mechanism.controller.protocol": "PLAIN",
            "sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-512",
            "listener.name.controller.plain.sasl.jaas.config": jaas("Plain", "c", "cc"),
            "listener.name.inside.scram-sha-512.sasl.jaas.config": jaas("Scram", "b", "bb"),
        }
    )
    found = outgoing_security(config)
    assert found.controllers.tls is not None
    assert found.controllers.tls.identity_file == STORES["ssl.keystore.location"]
    assert found.controllers.sasl is not None
    assert (found.controllers.sasl.mechanism, found.controllers.sasl.username) == ("PLAIN", "c")
    assert found.brokers.tls is None
    assert found.brokers.sasl is not None
    assert (found.brokers.sasl.mechanism, found.brokers.sasl.password) == ("SCRAM-SHA-512", "bb")
    assert "bb" not in repr(found)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"listener.security.protocol.map": "CONTROLLER:SASL_SSL,INSIDE:PLAINTEXT"}, "GSSAPI"),
        (
            {
                "listener.security.protocol.map": "CONTROLLER:SASL_SSL,INSIDE:PLAINTEXT",
                "sasl.mechanism.controller.protocol": "PLAIN",
            },
            "sasl.jaas.config is missing",
        ),
        (
            {"listener.security.protocol.map": "CONTROLLER:SSL,INSIDE:PLAINTEXT", "ssl.truststore.type": "JKS"},
            "the file is PEM text: set ssl.keystore.type",
        ),
    ],
)
def test_impossible_security_settings_are_refused(change: dict[str, str], why: str) -> None:
    with pytest.raises(InvalidConfig, match=why):
        outgoing_security(BrokerConfig({**BELOW, **change}))
