"""OutgoingSecurity: how a broker connects to other brokers and to controllers, from its server.properties.

    inter.broker.listener.name, security.inter.broker.protocol, sasl.mechanism.inter.broker.protocol
    controller.listener.names, sasl.mechanism.controller.protocol

The listener's name determines the protocol. Its ssl.* settings have the trusted certificates and the own one. For SASL,
`listener.name.NAME.MECHANISM.sasl.jaas.config` has username and password, or describes how to get a token.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tailrace.broker.config.broker_config import BrokerConfig
from tailrace.client.errors import UnsupportedSecurity
from tailrace.client.security.security import OAUTH_SETTINGS, PLAIN_TEXT, Security, sasl_of
from tailrace.client.security.tls_settings import tls_of, with_kafkas_types
from tailrace.client.security.tls_socket import client_context
from tailrace.model.listener_settings import settings_of_listener
from tailrace.model.security import oauthbearer
from tailrace.model.topic_config import InvalidConfig
from tailrace.waiting.outbox import Peer


@dataclass(frozen=True, slots=True, kw_only=True)
class OutgoingSecurity:
    brokers: Security = PLAIN_TEXT
    controllers: Security = PLAIN_TEXT

    def of(self, peer: Peer) -> Security:
        return self.controllers if peer.is_controller else self.brokers


def client_id_of(node_id: int) -> str:
    """Return the client id of a node's requests to other nodes."""
    return f"tailrace-{node_id}"


def outgoing_security(config: BrokerConfig) -> OutgoingSecurity:
    """Return the security of outgoing connections. Raise InvalidConfig for invalid settings; none for a standalone
    broker."""
    roles = config.roles
    if not roles.is_broker_only and not (roles.serves_brokers and roles.has_broker):
        return OutgoingSecurity()
    brokers, controllers = config.inter_broker_listener, roles.controller_listener
    to_brokers = _security(
        config.static, brokers.name, brokers.security_protocol, "sasl.mechanism.inter.broker.protocol"
    )
    if not roles.is_broker_only:
        return OutgoingSecurity(brokers=to_brokers)  # the controller is this node
    return OutgoingSecurity(
        brokers=to_brokers,
        controllers=_security(
            config.static, controllers, roles.controller_protocol, "sasl.mechanism.controller.protocol"
        ),
    )


def _security(static: Mapping[str, str], listener: str, protocol: str, mechanism_key: str) -> Security:
    settings = settings_of_listener(static, listener)
    tls = sasl = None
    try:
        if protocol.endswith("SSL"):
            tls = tls_of(with_kafkas_types(settings))
            client_context(tls)  # so that an unreadable store stops the start
    except UnsupportedSecurity as error:
        raise InvalidConfig(f"listener {listener}: {error}") from error
    try:
        if protocol.startswith("SASL"):
            mechanism = settings.get(mechanism_key, "GSSAPI")
            jaas = settings.get(f"{mechanism.lower()}.sasl.jaas.config", "")
            own = _oauth_settings(settings) if mechanism == oauthbearer.MECHANISM else {}
            sasl = sasl_of({**own, "sasl.mechanism": mechanism, "sasl.jaas.config": jaas})
    except UnsupportedSecurity as error:
        raise InvalidConfig(f"listener {listener}, {mechanism_key}: {error}") from error
    return Security(tls=tls, sasl=sasl)


def _oauth_settings(settings: Mapping[str, str]) -> dict[str, str]:
    """Return the OAuth settings. Those of the mechanism have precedence. A callback handler has an effect only
    there."""
    found = {}
    for key in OAUTH_SETTINGS:
        general = None if key == "sasl.login.callback.handler.class" else settings.get(key)
        text = settings.get(f"oauthbearer.{key}", general)
        if text is not None:
            found[key] = text
    return found
