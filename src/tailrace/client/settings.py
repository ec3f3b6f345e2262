"""ClientSettings: what a client may be told about patience, identity and security."""

from __future__ import annotations

from dataclasses import dataclass

from tailrace.client.errors import UnsupportedSecurity


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientSettings:
    client_id: str = "tailrace"
    connect_timeout_ms: int = 10_000
    request_timeout_ms: int = 30_000  # for one answer
    total_timeout_ms: int = 60_000  # for what was asked, with everything that is tried again
    backoff_ms: int = 50  # the first pause between two tries; each is twice the one before, up to
    backoff_max_ms: int = 1_000
    unknown_topic_grace_ms: int = 500  # a broker may hear of a new topic a moment after it was created
    # The seam for TLS and SASL: anything but plain text is refused here, before a byte is sent.
    security_protocol: str = "PLAINTEXT"

    def __post_init__(self) -> None:
        if self.security_protocol != "PLAINTEXT":
            raise UnsupportedSecurity(
                f"security protocol {self.security_protocol} is not spoken here yet: only PLAINTEXT is"
            )
