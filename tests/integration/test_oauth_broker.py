"""A broker with OAUTHBEARER and an identity provider: our client, Spark source, command line and connections to other
nodes, and a provider that changes its keys or does not respond.
"""

from __future__ import annotations

import socket
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from threading import Thread

import pytest

import tailrace
from tailrace.broker.config.broker_config import BrokerConfig
from tailrace.client.admin import NewTopic, create_topic
from tailrace.client.cluster.cluster_client import ClusterClient
from tailrace.client.errors import AuthenticationFailed
from tailrace.client.security.security import security_of
from tailrace.client.security.token_login import login_of
from tailrace.client.settings import ClientSettings
from tailrace.model.topic_config import InvalidConfig
from tailrace.protocol.messages import DescribeClusterRequest
from tailrace.server.peers.outgoing_security import outgoing_security
from tailrace.waiting.outbox import Failure, Peer
from tests.integration.test_secured_broker import BELOW, Network, port_of
from tests.support import command, oauth_settings
from tests.support.filled_topics import numbered, put
from tests.support.identity_provider import IdentityProvider
from tests.support.secured import STORES
from tests.support.source_rows import offsets, read

LISTENERS = {"PLAINTEXT": "PLAINTEXT", "SIGNED": "SASL_PLAINTEXT", "BOTH": "SASL_SSL", "UNSIGNED": "SASL_PLAINTEXT"}


def settings_of(provider: IdentityProvider) -> dict[str, str]:
    return {
        **STORES,
        "listeners": ",".join(f"{name}://127.0.0.1:0" for name in LISTENERS),
        "listener.security.protocol.map": ",".join(f"{name}:{protocol}" for name, protocol in LISTENERS.items()),
        "sasl.enabled.mechanisms": "OAUTHBEARER",
        "connection.failed.authentication.delay.ms": "10",
        **oauth_settings.listener("SIGNED", provider),
        **oauth_settings.listener("BOTH", provider),
        "listener.name.unsigned.oauthbearer.sasl.jaas.config": f"{oauth_settings.MODULE};",
    }


@pytest.fixture(scope="module")
def provider() -> Iterator[IdentityProvider]:
    with IdentityProvider(tls=True) as running:
        yield running


@pytest.fixture(scope="module")
def broker(provider: IdentityProvider) -> Iterator[tailrace.Broker]:
    with tailrace.Broker(config=settings_of(provider)) as running:
        with ClusterClient(f"127.0.0.1:{port_of(running, 'PLAINTEXT')}") as cluster:
            create_topic(cluster, NewTopic(name="t", partitions=1, replication_factor=1))
        put(f"127.0.0.1:{port_of(running, 'PLAINTEXT')}", "t", 0, numbered(20))
        yield running


def ways(provider: IdentityProvider) -> dict[str, dict[str, str]]:
    unsigned = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.jaas.config": f'{oauth_settings.MODULE} unsecuredLoginStringClaim_sub="alice";',
    }
    trust = {"ssl.truststore.type": "PEM", "ssl.truststore.location": STORES["ssl.truststore.location"]}
    return {
        "SIGNED": oauth_settings.client(provider),
        "BOTH": {**oauth_settings.client(provider, protocol="SASL_SSL"), **trust},
        "UNSIGNED": unsigned,
    }


@pytest.mark.parametrize("listener", ["SIGNED", "BOTH", "UNSIGNED"])
def test_our_client_source_and_command_line_authenticate_with_a_token(
    broker: tailrace.Broker, provider: IdentityProvider, tmp_path: Path, listener: str
) -> None:
    way = ways(provider)[listener]
    bootstrap = f"127.0.0.1:{port_of(broker, listener)}"
    with ClusterClient(bootstrap, ClientSettings(security=security_of(way))) as cluster:
        assert cluster.ask_any(DescribeClusterRequest()).error_code == 0
    options = {f"kafka.{name}": text for name, text in way.items()}
    assert offsets(read({**options, "kafka.bootstrap.servers": bootstrap, "subscribe": "t"})) == list(range(20))
    path = tmp_path / "client.properties"
    path.write_text("".join(f"{name}={text}\n" for name, text in {**way, "client.id": "x"}.items()))
    ran = command.tailrace("topics", "list", "--bootstrap", bootstrap, "--command-config", path)
    assert (ran.status, "t" in ran.out.split()) == (0, True)


def test_connections_to_other_nodes_use_a_token_that_is_renewed(
    broker: tailrace.Broker, provider: IdentityProvider
) -> None:
    security = security_of({**ways(provider)["SIGNED"], "sasl.login.refresh.min.period.seconds": "1"})
    assert security.sasl is not None
    assert security.sasl.oauth is not None
    peer = Peer("test", "127.0.0.1", port_of(broker, "SIGNED"))
    network = Network(security)
    # there is no token, and the loop does not wait for one
    assert network.ask(peer) in (Failure.UNREACHABLE, Failure.LOST)
    network.close()
    login = login_of(security.sasl.oauth)
    login.keep_fresh()
    network = Network(security)
    assert [network.ask(peer).error_code for _ in range(3)] == [0, 0, 0]
    network.close()
    login.release()


def test_a_refused_token_is_reported_to_our_client(broker: tailrace.Broker, provider: IdentityProvider) -> None:
    way = {**ways(provider)["UNSIGNED"]}
    bootstrap = f"127.0.0.1:{port_of(broker, 'SIGNED')}"
    with (
        pytest.raises(AuthenticationFailed, match=r"refused to authenticate 'alice': \{\"status\":\"invalid_token\"\}"),
        ClusterClient(bootstrap, ClientSettings(security=security_of(way))) as cluster,
    ):
        cluster.ask_any(DescribeClusterRequest())


def test_a_new_key_of_the_provider_is_fetched_by_the_first_token_that_needs_it() -> None:
    with IdentityProvider() as provider, tailrace.Broker(config=settings_of(provider)) as broker:
        provider.rotate("new")
        security = security_of(_with_file(provider.token(key="new"), provider))
        bootstrap = f"127.0.0.1:{port_of(broker, 'SIGNED')}"
        with ClusterClient(bootstrap, ClientSettings(security=security)) as cluster:
            assert cluster.ask_any(DescribeClusterRequest()).error_code == 0
        assert provider.requests["/keys"] == 3  # two at the start, one for each listener, and one now


def _with_file(token: str, provider: IdentityProvider) -> dict[str, str]:
    path = Path(tempfile.mkdtemp()) / "token"
    path.write_text(token)
    return {**oauth_settings.client(provider), "sasl.oauthbearer.token.endpoint.url": path.as_uri()}


def test_other_clients_are_served_while_the_provider_does_not_respond() -> None:
    with IdentityProvider() as provider, tailrace.Broker(config=settings_of(provider)) as broker:
        provider.delay_s = 1.0
        token = provider.token(header={"kid": "unknown"})
        way = _with_file(token, provider)
        signed = f"127.0.0.1:{port_of(broker, 'SIGNED')}"

        def stranger() -> None:
            with (
                pytest.raises(AuthenticationFailed),
                ClusterClient(signed, ClientSettings(security=security_of(way))) as cluster,
            ):
                cluster.ask_any(DescribeClusterRequest())

        thread = Thread(target=stranger)
        thread.start()
        deadline = time.monotonic() + 10
        while provider.requests["/keys"] < 3 and time.monotonic() < deadline:
            time.sleep(0.01)
        longest = 0.0
        with ClusterClient(f"127.0.0.1:{port_of(broker, 'PLAINTEXT')}") as cluster:
            for _ in range(20):
                began = time.monotonic()
                assert cluster.ask_any(DescribeClusterRequest()).error_code == 0
                longest = max(longest, time.monotonic() - began)
        assert thread.is_alive()
        assert longest < 0.5
        thread.join()


def test_a_broker_does_not_start_without_the_keys_of_a_listener(provider: IdentityProvider) -> None:
    settings = settings_of(provider)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        gone = f"http://127.0.0.1:{taken.getsockname()[1]}/keys"
    settings["listener.name.signed.oauthbearer.sasl.oauthbearer.jwks.endpoint.url"] = gone
    with pytest.raises(InvalidConfig, match=r"listener SIGNED: .* no keys from http"), tailrace.Broker(config=settings):
        pass


def test_a_broker_gets_its_own_token_by_its_listeners_settings(provider: IdentityProvider) -> None:
    prefix = "listener.name.inside.oauthbearer"
    config = BrokerConfig(
        {
            **BELOW,
            "listener.security.protocol.map": "CONTROLLER:SASL_PLAINTEXT,INSIDE:SASL_PLAINTEXT",
            "sasl.enabled.mechanisms": "OAUTHBEARER",
            "sasl.mechanism.controller.protocol": "OAUTHBEARER",
            "sasl.mechanism.inter.broker.protocol": "OAUTHBEARER",
            "listener.name.controller.oauthbearer.sasl.jaas.config": (
                f'{oauth_settings.MODULE} unsecuredLoginStringClaim_sub="controller";'
            ),
            **{f"{prefix}.{key}": text for key, text in oauth_settings.login(provider, "broker").items()},
            "sasl.oauthbearer.scope": "kafka",
        }
    )
    found = outgoing_security(config)
    assert found.controllers.sasl is not None
    assert found.controllers.sasl.username == "controller"
    assert found.brokers.sasl is not None
    assert found.brokers.sasl.oauth is not None
    assert (found.brokers.sasl.oauth.name, found.brokers.sasl.oauth.source.scope) == ("broker", "kafka")  # type: ignore[union-attr]
    assert "brk secret" not in repr(found)
