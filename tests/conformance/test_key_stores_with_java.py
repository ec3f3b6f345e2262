"""Java clients with key stores, and a Tailrace broker whose key is in a store, of both types."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.kafka_broker import free_port
from tests.support.log_oracle import LogOracle
from tests.support.secured import TLS
from tests.support.tailrace_process import TailraceProcess

pytestmark = pytest.mark.kafka

STORES = TLS / "stores"


def stores(identity: str, trust: str) -> dict[str, str]:
    return {
        "ssl.keystore.location": str(STORES / identity),
        "ssl.keystore.password": "secret1",
        "ssl.truststore.location": str(STORES / trust),
        "ssl.truststore.password": "secret1",
    }


@pytest.mark.parametrize(("ours", "javas"), [("jks", "p12"), ("p12", "jks")])
def test_java_client_and_our_broker_with_stores_of_both_types(
    log_oracle: LogOracle, tmp_path: Path, ours: str, javas: str
) -> None:
    port = free_port()
    settings = {
        "listeners": f"SSL://127.0.0.1:{port}",
        "ssl.client.auth": "required",
        "security.inter.broker.protocol": "SSL",
        **stores(f"broker.{ours}", f"trust.{ours}"),
    }
    options = [part for key, text in settings.items() for part in ("-o", f"{key}={text}")]
    client = tmp_path / "client.properties"
    chosen = {"security.protocol": "SSL", **stores(f"client.{javas}", f"trust.{javas}")}
    client.write_text("".join(f"{key}={text}\n" for key, text in chosen.items()))
    where = ("--bootstrap-server", f"127.0.0.1:{port}", "--command-config", str(client))
    with TailraceProcess(tmp_path / "ours" / "data", *options, port=port):
        log_oracle.tool("org.apache.kafka.tools.TopicCommand", *where, "--create", "--topic", "t")
        assert "t" in log_oracle.tool("org.apache.kafka.tools.TopicCommand", *where, "--list").split()
