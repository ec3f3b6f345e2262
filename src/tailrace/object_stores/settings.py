"""StoreSettings: endpoint, region and credentials of an object store. Omitted ones come from the environment.

The names are pyarrow's. The environment variables and files are those of Amazon's and Google's own tools. Secrets
appear in no message: neither in the repr nor in an address.
"""

from __future__ import annotations

from dataclasses import dataclass, field

ATTEMPTS = 5  # attempts of one request, with growing pauses
RETRY_SECONDS = 60  # Google's library limits the time instead


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreSettings:
    endpoint_override: str | None = None  # host:port or a complete http(s) URL, for servers other than Amazon's
    region: str | None = None
    anonymous: bool = False
    access_key: str | None = field(default=None, repr=False)
    secret_key: str | None = field(default=None, repr=False)
    session_token: str | None = field(default=None, repr=False)
    role_arn: str | None = None

    @property
    def endpoint(self) -> tuple[str | None, str]:
        """Host and port of endpoint_override, and the scheme."""
        if self.endpoint_override is None:
            return None, "https"
        scheme, found, host = self.endpoint_override.rpartition("://")
        return host.rstrip("/"), scheme if found else "https"
