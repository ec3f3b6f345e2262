"""A schema registry that keeps its schemas in topics: Apicurio, unchanged, with confluent-kafka's Avro serializers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tailrace.spark.typed.schemas.registry import Registry, RegistryAddress
from tests.support.apicurio import Apicurio
from tests.support.confluent import create_topic
from tests.support.foreign_clients import PYTHON, python_with
from tests.support.tailrace_process import TailraceProcess

pytestmark = pytest.mark.slow

COUNT = 200


def test_schemas_survive_kills_of_the_registry_and_the_broker(tmp_path: Path) -> None:
    python = python_with("confluent-kafka[avro,schemaregistry]==2.13.2")
    with TailraceProcess(tmp_path / "data") as broker, Apicurio(tmp_path, broker.bootstrap) as registry:
        create_topic(broker.bootstrap, "orders")
        command = (str(PYTHON / "avro_orders.py"), broker.bootstrap, registry.url, "orders")
        python(*command, "write", str(COUNT))
        registry.kill()
        broker.kill()
        broker.start()
        registry.start()
        python(*command, "write", str(COUNT))
        orders = [json.loads(line) for line in python(*command, "read", str(2 * COUNT)).splitlines()]
        assert orders == 2 * [{"number": number, "what": "two coffees"} for number in range(COUNT)]
        schema = Registry(RegistryAddress.parse(registry.url)).by_id(1)
        assert (schema.kind, json.loads(schema.text)["name"]) == ("AVRO", "Order")
