"""LocalSecurity: TLS and SASL for a broker of this process, and the settings with which clients log in.

security = LocalSecurity(users={"alice": "secret"}, mechanism="SCRAM-SHA-256")
with tailrace.Broker(security=security) as broker:
    producer = Producer(broker.client_settings(user="alice"))
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from tailrace.embedded.certificates import process_authority

MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
# These characters separate the parts of sasl.jaas.config and of SCRAM credentials.
_UNFIT: Final = re.compile(r'[\s"\\,;=\[\]]')
_LOGIN_MODULE: Final = "org.apache.kafka.common.security.{}LoginModule"


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalSecurity:
    """The security of the only listener.

    With `users` (passwords by name) clients log in by SASL. With `client_certificates` they need a certificate.
    """

    tls: bool = True
    users: Mapping[str, str] = field(default_factory=dict)
    mechanism: str = "PLAIN"
    client_certificates: bool = False

    def __post_init__(self) -> None:
        if self.mechanism not in MECHANISMS:
            raise ValueError(f"mechanism is {self.mechanism!r}; it must be one of {', '.join(MECHANISMS)}")
        if not self.tls and not self.users:
            raise ValueError("a LocalSecurity needs tls or users: set at least one of them")
        if self.client_certificates and not self.tls:
            raise ValueError("client_certificates need tls")
        for name, password in self.users.items():
            for text in (name, password):
                if not text or _UNFIT.search(text):
                    raise ValueError(f'{text!r} cannot be a name or a password here: avoid blanks and " \\ , ; = [ ]')

    @property
    def protocol(self) -> str:
        """The value of security.protocol."""
        return {(True, True): "SASL_SSL", (True, False): "SSL", (False, True): "SASL_PLAINTEXT"}[
            self.tls, bool(self.users)
        ]

    def broker_settings(self, host: str) -> dict[str, str]:
        """Return the settings of the broker, without its listeners."""
        settings = {"security.inter.broker.protocol": self.protocol}
        if self.tls:
            authority = process_authority()
            hosts = tuple(dict.fromkeys((host, "localhost", "127.0.0.1", "::1")))
            settings |= {
                "ssl.keystore.type": "PEM",
                "ssl.keystore.location": str(authority.certificate("broker", hosts)),
                "ssl.truststore.type": "PEM",
                "ssl.truststore.location": str(authority.certificate_file),
                "ssl.client.auth": "required" if self.client_certificates else "none",
            }
        if self.users:
            prefix = f"listener.name.{self.protocol.lower()}.{self.mechanism.lower()}."
            settings |= {
                "sasl.enabled.mechanisms": self.mechanism,
                "sasl.mechanism.inter.broker.protocol": self.mechanism,
                f"{prefix}sasl.jaas.config": self._broker_login(),
            }
        return settings

    def _broker_login(self) -> str:
        if self.mechanism != "PLAIN":
            return f"{_LOGIN_MODULE.format('scram.Scram')} required;"
        users = "".join(f' user_{name}="{password}"' for name, password in self.users.items())
        return f"{_LOGIN_MODULE.format('plain.Plain')} required{users};"

    def credentials(self) -> list[str]:
        """Return the SCRAM credentials that a new data directory gets."""
        if self.mechanism == "PLAIN":
            return []
        return [f"{self.mechanism}=[name={name},password={password}]" for name, password in self.users.items()]

    def login(self, user: str | None) -> Login:
        """Return the login of a user, by default of the first one."""
        if not self.users:
            return Login(self, user or "client", None)
        name = next(iter(self.users)) if user is None else user
        if name not in self.users:
            raise ValueError(f"there is no user {name!r}; the users are {', '.join(self.users)}")
        return Login(self, name, self.users[name])


@dataclass(frozen=True, slots=True)
class Login:
    """One user, as the settings of a client."""

    security: LocalSecurity
    user: str
    password: str | None

    @property
    def _certificate(self) -> str | None:
        """The file with the key and the certificate of the user; None if the broker needs no certificate."""
        return str(process_authority().certificate(self.user)) if self.security.client_certificates else None

    def librdkafka(self) -> dict[str, Any]:
        settings: dict[str, Any] = {"security.protocol": self.security.protocol}
        if self.security.tls:
            settings["ssl.ca.location"] = str(process_authority().certificate_file)
        if (certificate := self._certificate) is not None:
            settings |= {"ssl.certificate.location": certificate, "ssl.key.location": certificate}
        if self.password is not None:
            settings |= {
                "sasl.mechanism": self.security.mechanism,
                "sasl.username": self.user,
                "sasl.password": self.password,
            }
        return settings

    def kafka_python(self) -> dict[str, Any]:
        settings: dict[str, Any] = {"security_protocol": self.security.protocol} | self._sasl_plain()
        if self.security.tls:
            settings["ssl_cafile"] = str(process_authority().certificate_file)
        if (certificate := self._certificate) is not None:
            settings |= {"ssl_certfile": certificate, "ssl_keyfile": certificate}
        return settings

    def aiokafka(self) -> dict[str, Any]:
        import ssl

        settings: dict[str, Any] = {"security_protocol": self.security.protocol} | self._sasl_plain()
        if self.security.tls:
            context = ssl.create_default_context(cafile=str(process_authority().certificate_file))
            if (certificate := self._certificate) is not None:
                context.load_cert_chain(certificate)
            settings["ssl_context"] = context
        return settings

    def _sasl_plain(self) -> dict[str, str]:
        """Return the settings that kafka-python and aiokafka share."""
        if self.password is None:
            return {}
        return {
            "sasl_mechanism": self.security.mechanism,
            "sasl_plain_username": self.user,
            "sasl_plain_password": self.password,
        }

    def java(self) -> dict[str, Any]:
        settings: dict[str, Any] = {"security.protocol": self.security.protocol}
        if self.security.tls:
            settings |= {
                "ssl.truststore.type": "PEM",
                "ssl.truststore.location": str(process_authority().certificate_file),
            }
        if (certificate := self._certificate) is not None:
            settings |= {"ssl.keystore.type": "PEM", "ssl.keystore.location": certificate}
        if self.password is not None:
            module = _LOGIN_MODULE.format("plain.Plain" if self.security.mechanism == "PLAIN" else "scram.Scram")
            settings |= {
                "sasl.mechanism": self.security.mechanism,
                "sasl.jaas.config": f'{module} required username="{self.user}" password="{self.password}";',
            }
        return settings


# By client: the name of its setting for the bootstrap address, and its settings for a login.
CLIENTS: Final[Mapping[str, tuple[str, Callable[[Login], dict[str, Any]]]]] = {
    "librdkafka": ("bootstrap.servers", Login.librdkafka),
    "kafka-python": ("bootstrap_servers", Login.kafka_python),
    "aiokafka": ("bootstrap_servers", Login.aiokafka),
    "java": ("bootstrap.servers", Login.java),
}


def client_settings(client: str, bootstrap: str, security: LocalSecurity | None, user: str | None) -> dict[str, Any]:
    """Return the settings with which a client connects, and logs in if the broker is secured."""
    if client not in CLIENTS:
        raise ValueError(f"there are no settings for {client!r}; the clients are {', '.join(CLIENTS)}")
    address, settings_of = CLIENTS[client]
    if security is None:
        if user is not None:
            raise ValueError(f"the broker has no users, so {user!r} cannot log in: give the broker a LocalSecurity")
        return {address: bootstrap}
    return {address: bootstrap, **settings_of(security.login(user))}
