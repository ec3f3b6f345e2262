"""Lists and changes the quotas of users, client ids and addresses."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import Final, NamedTuple

from tailrace.client.cluster.cluster_client import ClusterClient
from tailrace.client.errors import Refused
from tailrace.protocol.messages import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
)

ENTITY_TYPES: Final = ("user", "client-id", "ip")
DEFAULT_NAME: Final = None  # the entity that applies where no name matches


class Match(IntEnum):
    EXACT = 0
    DEFAULT = 1
    ANY = 2


class QuotaEntity(NamedTuple):
    """Parts such as ("user", "alice"), sorted. The name None is the default of that type."""

    parts: tuple[tuple[str, str | None], ...]

    @classmethod
    def of(cls, names: Mapping[str, str | None]) -> QuotaEntity:
        return cls(tuple((kind, names[kind]) for kind in ENTITY_TYPES if kind in names))

    def __str__(self) -> str:
        return ", ".join(f"{kind} {'(default)' if name is None else name}" for kind, name in self.parts)


def list_quotas(cluster: ClusterClient, wanted: Mapping[str, str | None]) -> dict[QuotaEntity, dict[str, float]]:
    """Return the quotas of the entities that have all the wanted parts, or of all entities if no part is given."""

    def check(answer: DescribeClientQuotasResponse) -> None:
        if answer.error_code:
            raise Refused("quotas", answer.error_code, answer.error_message)

    components = [
        DescribeClientQuotasRequest.ComponentData(
            entity_type=kind, match_type=Match.DEFAULT if name is None else Match.EXACT, match=name
        )
        for kind, name in wanted.items()
    ]
    answer: DescribeClientQuotasResponse = cluster.ask_any(
        DescribeClientQuotasRequest(components=components, strict=False), check=check
    )
    found = {
        QuotaEntity.of({part.entity_type: part.entity_name for part in entry.entity}): {
            one.key: one.value for one in sorted(entry.values, key=lambda one: one.key)
        }
        for entry in answer.entries or ()
    }
    return dict(sorted(found.items(), key=lambda item: str(item[0])))


def alter_quotas(
    cluster: ClusterClient,
    entity: QuotaEntity,
    changes: Mapping[str, float | None],
    *,
    validate_only: bool = False,
) -> None:
    """Set quotas of one entity, or remove those whose value is None. If one is refused, none is changed."""
    request = AlterClientQuotasRequest(
        entries=[
            AlterClientQuotasRequest.EntryData(
                entity=[
                    AlterClientQuotasRequest.EntityData(entity_type=kind, entity_name=name)
                    for kind, name in entity.parts
                ],
                ops=[
                    AlterClientQuotasRequest.OpData(key=key, value=value or 0.0, remove=value is None)
                    for key, value in changes.items()
                ],
            )
        ],
        validate_only=validate_only,
    )

    def check(answer: AlterClientQuotasResponse) -> None:
        for entry in answer.entries:
            if entry.error_code:
                raise Refused(str(entity), entry.error_code, entry.error_message)

    cluster.change(request, check)
