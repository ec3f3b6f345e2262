"""Configs of brokers at the controller listener: each broker checks its own and forwards them."""

from __future__ import annotations

import pytest

from tailrace.broker.config.broker_config import BrokerConfig
from tailrace.model.errors import ErrorCode
from tailrace.model.topic_config import InvalidConfig
from tailrace.protocol import messages as m
from tests.support.controller_listener import CONTROLLER, PlayedController

BOTH = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "listeners": "PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093",
}


def configured(controller: PlayedController, broker: str, *, listener: str = "CONTROLLER") -> ErrorCode:
    kind = m.IncrementalAlterConfigsRequest
    change = kind.AlterableConfig(name="num.replica.fetchers", config_operation=0, value="2")
    resource = kind.AlterConfigsResource(resource_type=4, resource_name=broker, configs=[change])
    client = controller.client()
    client.context.listener = listener
    (result,) = client.ask(kind(resources=[resource]), 1).responses
    return ErrorCode(result.error_code)


@pytest.mark.parametrize("static", [CONTROLLER, BOTH], ids=["controller", "broker and controller"])
def test_a_controller_stores_configs_of_every_registered_broker(static: dict[str, str]) -> None:
    controller = PlayedController(static)
    controller.broker(2).register()
    assert configured(controller, "2") is ErrorCode.NONE
    assert configured(controller, "9") is ErrorCode.BROKER_ID_NOT_REGISTERED
    assert configured(controller, static["node.id"]) is ErrorCode.NONE  # a controller has configs as well
    assert {one.name for one in controller.image.configs} >= {"2", static["node.id"]}


def test_a_broker_refuses_configs_of_other_brokers() -> None:
    controller = PlayedController(BOTH)
    controller.broker(2).register()
    assert configured(controller, "2", listener="PLAINTEXT") is ErrorCode.INVALID_REQUEST
    assert configured(controller, "1", listener="PLAINTEXT") is ErrorCode.NONE


def test_the_old_api_replaces_configs_of_a_broker() -> None:
    controller = PlayedController()
    controller.broker(2).register()
    assert configured(controller, "2") is ErrorCode.NONE
    kind = m.AlterConfigsRequest
    config = kind.AlterableConfig(name="background.threads", value="11")
    resource = kind.AlterConfigsResource(resource_type=4, resource_name="2", configs=[config])
    (result,) = controller.ask(kind(resources=[resource]), 2).responses
    assert result.error_code == 0
    ((_, kept),) = [(one.name, configs) for one, configs in controller.image.configs.items() if one.name == "2"]
    assert dict(kept) == {"background.threads": "11"}


def test_a_controller_may_have_settings_of_listeners_that_only_brokers_have() -> None:
    shared = {
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,INSIDE:PLAINTEXT",
        "listener.name.inside.max.connections": "5",
    }
    config = BrokerConfig.of(log_dirs=["/data"], port=9092, settings={**CONTROLLER, **shared})
    assert [one.name for one in config.controller_listeners] == ["CONTROLLER"]
    misspelt = {"listener.name.nowhere.max.connections": "5"}
    with pytest.raises(InvalidConfig, match="listener NOWHERE does not exist"):
        BrokerConfig.of(log_dirs=["/data"], port=9092, settings={**CONTROLLER, **shared, **misspelt})
