"""OAUTHBEARER from Spark: the source and the sink accept the options of Spark's own Kafka connector."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import tailrace
from tailrace.client.admin import NewTopic, create_topic
from tailrace.client.cluster.cluster_client import ClusterClient
from tests.support import oauth_settings
from tests.support.identity_provider import CLIENTS, IdentityProvider

pytestmark = pytest.mark.slow

LISTENERS = {"PLAINTEXT": "PLAINTEXT", "SIGNED": "SASL_PLAINTEXT"}


@pytest.fixture(scope="module")
def provider() -> Iterator[IdentityProvider]:
    with IdentityProvider() as running:
        yield running


@pytest.fixture(scope="module")
def options(provider: IdentityProvider) -> Iterator[dict[str, str]]:
    settings = {
        "listeners": ",".join(f"{name}://127.0.0.1:0" for name in LISTENERS),
        "listener.security.protocol.map": ",".join(f"{name}:{kind}" for name, kind in LISTENERS.items()),
        "sasl.enabled.mechanisms": "OAUTHBEARER",
        **oauth_settings.listener("SIGNED", provider),
    }
    jaas = f'{oauth_settings.MODULE} clientId="alice" clientSecret="{CLIENTS["alice"]}";'
    with tailrace.Broker(config=settings) as broker:
        with ClusterClient(f"127.0.0.1:{broker._running().port('PLAINTEXT')}") as cluster:
            for topic in ("written-by-tailrace", "written-by-kafka", "streamed"):
                create_topic(cluster, NewTopic(name=topic, partitions=2, replication_factor=1))
        yield {
            "kafka.bootstrap.servers": f"127.0.0.1:{broker._running().port('SIGNED')}",
            "kafka.security.protocol": "SASL_PLAINTEXT",
            "kafka.sasl.mechanism": "OAUTHBEARER",
            "kafka.sasl.jaas.config": jaas,
            "kafka.sasl.login.callback.handler.class": oauth_settings.LOGIN,
            "kafka.sasl.oauthbearer.token.endpoint.url": provider.token_url,
        }


@pytest.mark.parametrize("sink", ["tailrace", "kafka"])
def test_source_and_sink_accept_the_oauth_options_of_the_connector(
    connector: Any, options: dict[str, str], provider: IdentityProvider, sink: str
) -> None:
    java = connector._jvm.java.lang.System
    java.setProperty("org.apache.kafka.sasl.oauthbearer.allowed.urls", provider.token_url)
    topic = f"written-by-{sink}"
    rows = connector.range(100).selectExpr("cast(id as string) as value")
    rows.write.format(sink).options(**options, topic=topic).mode("append").save()
    for source in ("tailrace", "kafka"):
        found = connector.read.format(source).options(**options, subscribe=topic).load()
        values = sorted(int(bytes(row.value)) for row in found.select("value").collect())
        assert values == list(range(100)), source


def test_a_stream_reads_with_a_token(connector: Any, options: dict[str, str], tmp_path: Path) -> None:
    rows = connector.range(10).selectExpr("cast(id as string) as value")
    rows.write.format("tailrace").options(**options, topic="streamed").mode("append").save()
    stream = (
        connector.readStream.format("tailrace")
        .options(**options, subscribe="streamed", startingOffsets="earliest")
        .load()
        .writeStream.format("parquet")
        .options(path=str(tmp_path / "out"), checkpointLocation=str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    stream.awaitTermination(120)
    assert connector.read.parquet(str(tmp_path / "out")).count() == 10


def test_a_wrong_secret_is_refused_with_its_reason(connector: Any, options: dict[str, str]) -> None:
    wrong = {**options, "kafka.sasl.jaas.config": options["kafka.sasl.jaas.config"].replace(CLIENTS["alice"], "wrong")}
    with pytest.raises(Exception, match="invalid_client"):
        connector.read.format("tailrace").options(**wrong, subscribe="streamed").load().collect()
