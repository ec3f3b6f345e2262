"""OAUTHBEARER settings for brokers and clients, with the tests' identity provider."""

from __future__ import annotations

from tests.support.identity_provider import AUDIENCE, CLIENTS, ISSUER, IdentityProvider
from tests.support.secured import TLS

CLASSES = "org.apache.kafka.common.security.oauthbearer"
MODULE = f"{CLASSES}.OAuthBearerLoginModule required"
VALIDATOR = f"{CLASSES}.OAuthBearerValidatorCallbackHandler"
LOGIN = f"{CLASSES}.OAuthBearerLoginCallbackHandler"
TRUST = f'ssl.truststore.type="PEM" ssl.truststore.location="{TLS / "authority.pem"}"'


def listener(name: str, provider: IdentityProvider, **more: str) -> dict[str, str]:
    """Return the settings of a listener that accepts signed tokens; `more` are settings of the mechanism, with _ for a
    dot.
    """
    prefix = f"listener.name.{name.lower()}.oauthbearer"
    return {
        f"{prefix}.sasl.jaas.config": f"{MODULE} {TRUST};",
        f"{prefix}.sasl.server.callback.handler.class": VALIDATOR,
        f"{prefix}.sasl.oauthbearer.jwks.endpoint.url": provider.jwks_url,
        f"{prefix}.sasl.oauthbearer.expected.issuer": ISSUER,
        f"{prefix}.sasl.oauthbearer.expected.audience": AUDIENCE,
        **{f"{prefix}.{key}": text for key, text in more.items()},
    }


def client(provider: IdentityProvider, name: str = "alice", protocol: str = "SASL_PLAINTEXT") -> dict[str, str]:
    """Return the client settings, for Kafka's clients or ours, that get a token from the endpoint."""
    return {"security.protocol": protocol, "sasl.mechanism": "OAUTHBEARER", **login(provider, name)}


def login(provider: IdentityProvider, name: str = "alice") -> dict[str, str]:
    return {
        "sasl.jaas.config": f"{MODULE} {TRUST};",
        "sasl.login.callback.handler.class": LOGIN,
        "sasl.oauthbearer.token.endpoint.url": provider.token_url,
        "sasl.oauthbearer.client.credentials.client.id": name,
        "sasl.oauthbearer.client.credentials.client.secret": CLIENTS[name],
    }
