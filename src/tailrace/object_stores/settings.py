"""StoreSettings: how to reach an object store; what is not said comes from the environment, as its own tools have it.

The words are pyarrow's. Secrets are in no message: neither in the value's text nor in an address.
"""

from __future__ import annotations

from dataclasses import dataclass, field

ATTEMPTS = 5  # of one request; the pauses between them grow
RETRY_SECONDS = 60  # Google's library counts time instead


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreSettings:
    endpoint_override: str | None = None  # host:port or a whole http(s) address; for servers other than Amazon's
    region: str | None = None
    anonymous: bool = False
    access_key: str | None = field(default=None, repr=False)
    secret_key: str | None = field(default=None, repr=False)
    session_token: str | None = field(default=None, repr=False)
    role_arn: str | None = None

    @property
    def endpoint(self) -> tuple[str | None, str]:
        """The other server's host and port, and the scheme to speak to it."""
        if self.endpoint_override is None:
            return None, "https"
        scheme, found, host = self.endpoint_override.rpartition("://")
        return host.rstrip("/"), scheme if found else "https"
