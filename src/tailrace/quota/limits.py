"""QuotaLimits: which limit applies to a client, and which clients share it.

The most specific limit wins, as in Kafka:

    1  user and client id            4  default user and client id            7  client id
    2  user and default client id    5  default user and default client id    8  default client id
    3  user                          6  default user

A limit for a user and a client id belongs to that pair alone. A limit for a user is shared by all client ids of the
user. A limit for a client id is shared by all users with that client id. A default limit is not shared: each user or
client id to which it applies has the full limit.

Kafka determines the owner first and looks up its limit afterwards. If limits of only one kind exist (user, client id or
pair), each client's owner is of that kind, even if it has no limit. A client with an empty client id has no client id
limit.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeAlias, TypeVar

K = TypeVar("K")

USER: Final = "user"
CLIENT_ID: Final = "client-id"
IP: Final = "ip"

# ((entity type, name), …) sorted by type, as in `metadata/image/image.py`. The name None is the default entity.
Entity: TypeAlias = tuple[tuple[str, str | None], ...]
Quotas: TypeAlias = Mapping[Entity, Mapping[str, float]]
# The owner of a limit: a user, a client id, or both. "" where that part does not matter.
Owner: TypeAlias = tuple[str, str]


class QuotaLimits:
    def __init__(self, quota: str) -> None:
        """`quota` is the name of the limit, for example producer_byte_rate."""
        self.quota = quota
        self.is_enabled = False
        self._users: dict[str | None, float] = {}
        self._clients: dict[str | None, float] = {}
        self._pairs: dict[tuple[str | None, str | None], float] = {}

    def update(self, quotas: Quotas) -> None:
        """Replace the limits of some entities. An entity without this limit has none any longer."""
        for entity, limits in quotas.items():
            limit = limits.get(self.quota)
            names = dict(entity)
            if USER in names and CLIENT_ID in names:
                _replace(self._pairs, (names[USER], names[CLIENT_ID]), limit)
            elif USER in names:
                _replace(self._users, names[USER], limit)
            elif CLIENT_ID in names:
                _replace(self._clients, names[CLIENT_ID], limit)
        self.is_enabled = bool(self._users or self._clients or self._pairs)

    def owner(self, user: str, client_id: str) -> Owner:
        """Return the owner of the limit of a client. Clients with the same owner share the limit."""
        users, pairs = self._users, self._pairs
        if not pairs:
            if not users:
                return "", client_id
            if not self._clients:
                return user, ""
        elif not users and not self._clients:
            return user, client_id
        if (user, client_id) in pairs or (user, None) in pairs:
            return user, client_id
        if user in users:
            return user, ""
        if (None, client_id) in pairs or (None, None) in pairs:
            return user, client_id
        if None in users:
            return user, ""
        return "", client_id

    def limit(self, owner: Owner) -> float | None:
        """Return the limit of an owner, or None if it has none."""
        user, client_id = owner
        if user and client_id:
            for pair in ((user, client_id), (user, None), (None, client_id), (None, None)):
                if pair in self._pairs:
                    return self._pairs[pair]
            return None
        if user:
            return self._users.get(user, self._users.get(None))
        if client_id:
            return self._clients.get(client_id, self._clients.get(None))
        return None


def _replace(limits: dict[K, float], key: K, limit: float | None) -> None:
    if limit is None:
        limits.pop(key, None)
    else:
        limits[key] = limit
