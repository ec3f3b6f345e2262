"""ClientSettings: what a client may be told about patience, identity and security."""

from __future__ import annotations

from dataclasses import dataclass

from tailrace.client.security.security import PLAIN_TEXT, Security


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientSettings:
    client_id: str = "tailrace"
    connect_timeout_ms: int = 10_000
    request_timeout_ms: int = 30_000  # for one answer
    total_timeout_ms: int = 60_000  # for what was asked, with everything that is tried again
    backoff_ms: int = 50  # the first pause between two tries; each is twice the one before, up to
    backoff_max_ms: int = 1_000
    unknown_topic_grace_ms: int = 500  # a broker may hear of a new topic a moment after it was created
    security: Security = PLAIN_TEXT
