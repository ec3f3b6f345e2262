"""Jobs at a cluster with SASL_SSL and ACLs. No password is in a plan of Spark."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import tailrace as tailrace_package
from tests.support.cli_play import ADMIN, write_client_config
from tests.support.command import Ran, tailrace
from tests.support.filled_topics import numbered, put
from tests.support.secured import STORES, TLS, jaas

SETTINGS = {
    **STORES,
    "listeners": "BOTH://127.0.0.1:0,PLAIN://127.0.0.1:0",
    "listener.security.protocol.map": "BOTH:SASL_SSL,PLAIN:PLAINTEXT",
    "inter.broker.listener.name": "PLAIN",
    "sasl.enabled.mechanisms": "PLAIN",
    "listener.name.both.plain.sasl.jaas.config": jaas("Plain", "x", "x", **ADMIN),
    "connection.failed.authentication.delay.ms": "10",
}
COUNT = 40


class Secured:
    """A broker with a secured listener, and client settings for it in a file."""

    def __init__(self, running: Any, config: Path) -> None:
        self.bootstrap = f"127.0.0.1:{running._running().port('BOTH')}"
        self.plain = f"127.0.0.1:{running._running().port('PLAIN')}"
        self.config = config

    def job(self, verb: str, *arguments: object) -> Ran:
        return tailrace("job", verb, *arguments, "--command-config", self.config, "--timeout", "20")


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    folder = tmp_path_factory.mktemp("secured")
    with tailrace_package.Broker(folder / "data", config=SETTINGS) as running:
        found = Secured(running, write_client_config(folder / "admin.properties", "admin"))
        running.create_topic("t", partitions=1)
        values = [(key, json.dumps({"n": n}).encode()) for n, (key, _) in enumerate(numbered(COUNT))]
        put(found.plain, "t", 0, values)
        yield found


def test_without_settings_the_error_names_the_missing_one(spark: Any, secured: Secured) -> None:
    ran = tailrace("job", "profile", secured.bootstrap, "--timeout", "5")
    assert ran.status == 2
    assert "uses TLS: set security.protocol" in ran.err


def test_a_profile_reads_every_record_with_settings_of_kcat(spark: Any, secured: Secured) -> None:
    settings = {
        "security.protocol": "sasl_ssl",
        "sasl.mechanisms": "PLAIN",
        "sasl.username": "admin",
        "sasl.password": ADMIN["admin"],
        "ssl.ca.location": str(TLS / "authority.pem"),
        "ssl.endpoint.identification.algorithm": "",
    }
    pairs = [word for name, value in settings.items() for word in ("-X", f"{name}={value}")]
    ran = tailrace("job", "profile", secured.bootstrap, "--topic", "t", *pairs, "--json")
    assert ran.status == 0, ran.err
    assert ran.json["topics"][0]["records"] == COUNT


def test_a_parquet_export_has_every_record_and_no_password_in_a_plan(
    spark: Any, secured: Secured, tmp_path: Path
) -> None:
    import pyarrow.parquet as pq

    plain = secured.job("export", secured.bootstrap, tmp_path / "bytes", "--topic", "t")
    assert plain.status == 0, plain.err
    assert pq.read_table(tmp_path / "bytes").num_rows == COUNT
    typed = ("--value-format", "json", "--schema", "infer")
    ran = secured.job("export", secured.bootstrap, tmp_path / "typed", "--topic", "t", *typed)
    assert ran.status == 0, ran.err
    assert pq.read_table(tmp_path / "typed").column("value").to_pylist() == [{"n": n} for n in range(COUNT)]
    shown = spark._jsparkSession.sharedState().statusStore().executionsList()
    pages = [shown.apply(number) for number in range(shown.size())]
    texts = [f"{page.description()} {page.details()} {page.physicalPlanDescription()}" for page in pages]
    assert any("Python" in text or "tailrace" in text for text in texts)
    assert not any(ADMIN["admin"] in text for text in texts)


def test_a_table_export_has_every_record(spark: Any, secured: Secured, tmp_path: Path) -> None:
    ran = secured.job("export", secured.bootstrap, tmp_path / "table", "--topic", "t", "--to", "delta", "--json")
    assert ran.status == 0, ran.err
    assert ran.json["records"] == COUNT


def test_replay_diff_and_load_use_the_settings_of_each_cluster(spark: Any, secured: Secured, tmp_path: Path) -> None:
    nothing = tmp_path / "nothing.properties"
    nothing.touch()
    with tailrace_package.Broker(tmp_path / "other") as other:
        places = secured.bootstrap, other.bootstrap
        ran = secured.job("replay", *places, "--topic", "t", "--create", "--to-command-config", nothing)
        assert ran.status == 0, ran.err
        ran = secured.job("diff", *places, "--topic", "t", "--there-command-config", nothing)
        assert ran.status == 0, ran.err
        back = secured.job("replay", secured.bootstrap, secured.bootstrap, "--topic", "t:copy", "--create")
        assert back.status == 0, back.err
    lines = tmp_path / "lines.json"
    lines.write_text('{"value": "one"}\n{"value": "two"}\n')
    where = ("--format", "json", "--topic", "loaded", "--partitions", "1")
    ran = secured.job("load", lines, secured.bootstrap, *where, "--json")
    assert ran.status == 0, ran.err
    assert ran.json["partitions"][0]["records"] == 2
