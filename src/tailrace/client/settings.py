"""ClientSettings: timeouts, retries, client id and security of a client."""

from __future__ import annotations

from dataclasses import dataclass

from tailrace.client.security.security import PLAIN_TEXT, Security


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientSettings:
    client_id: str = "tailrace"
    connect_timeout_ms: int = 10_000
    request_timeout_ms: int = 30_000  # for one response
    total_timeout_ms: int = 60_000  # for a request with all its retries
    backoff_ms: int = 50  # the first pause between two attempts; each pause is twice the previous one
    backoff_max_ms: int = 1_000
    unknown_topic_grace_ms: int = 500  # a broker may learn of a new topic shortly after its creation
    security: Security = PLAIN_TEXT
