"""Settings of secured listeners, for Tailrace, Kafka and clients: certificates and passwords."""

from __future__ import annotations

from pathlib import Path

TLS = Path(__file__).parent / "tls"

STORES = {
    "ssl.keystore.type": "PEM",
    "ssl.keystore.location": str(TLS / "broker.pem"),
    "ssl.truststore.type": "PEM",
    "ssl.truststore.location": str(TLS / "authority.pem"),
}


def jaas(kind: str, name: str, password: str, **users: str) -> str:
    """Return a value of sasl.jaas.config; `users` are those that PLAIN accepts."""
    module = f"org.apache.kafka.common.security.{kind.lower()}.{kind}LoginModule"
    known = "".join(f' user_{user}="{word}"' for user, word in users.items())
    return f'{module} required username="{name}" password="{password}"{known};'


def librdkafka(
    mechanism: str | None = None, name: str = "", password: str = "", *, tls: bool = False
) -> dict[str, str]:
    """Return the settings of a librdkafka client, with a client certificate if TLS is used."""
    settings = {}
    if tls:
        settings = {
            "ssl.ca.location": str(TLS / "authority.pem"),
            "ssl.certificate.location": str(TLS / "client.pem"),
            "ssl.key.location": str(TLS / "client.pem"),
        }
    if mechanism is not None:
        settings |= {"sasl.mechanism": mechanism, "sasl.username": name, "sasl.password": password}
    settings["security.protocol"] = {
        (False, False): "plaintext",
        (True, False): "ssl",
        (False, True): "sasl_plaintext",
        (True, True): "sasl_ssl",
    }[tls, mechanism is not None]
    return settings
