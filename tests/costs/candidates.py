"""Candidates: for each API the recipes that may be expensive, from its schema and from known attacks."""

from __future__ import annotations

from collections.abc import Iterator

from tailrace.broker.requests.api_table import API_TABLE, TELEMETRY_TABLE, ApiRow
from tailrace.protocol.api_keys import ApiKey
from tailrace.protocol.codegen.schema import Field, MessageSchema, StructSchema
from tailrace.protocol.registry import request_class
from tests.costs.hostile_batches import HOSTILE, hostile_batch
from tests.costs.recipe import SIZE_MAX, Recipe, tag_size
from tests.costs.values import Kind

_NESTED = (Kind.SAME, Kind.EXISTING, Kind.UNKNOWN, Kind.LONG)


def candidates(row: ApiRow) -> Iterator[Recipe]:
    """Yield the recipes of one API: all kinds in its newest version, two in its last version that is not flexible."""
    schema = request_class(row.key).SCHEMA
    yield from of_version(row.key, schema, row.max_version, tuple(Kind))
    last_fixed = min(row.max_version, schema.flexible.low - 1)
    if row.min_version <= last_fixed < row.max_version:
        yield from of_version(row.key, schema, last_fixed, (Kind.MINIMAL, Kind.SAME))
    yield from known_attacks(row.key)


def of_version(key: ApiKey, schema: MessageSchema, version: int, kinds: tuple[Kind, ...]) -> Iterator[Recipe]:
    """Yield the recipes of one version that follow from the schema."""
    arrays = list(arrays_of(schema, version))
    for path, field in arrays:
        for kind in kinds:
            if kind in (Kind.LONG, Kind.LONGEST, Kind.INVALID, Kind.NULL) and not _has_text(field, version):
                continue
            if kind in (Kind.LONGEST, Kind.NULL) and "." in path:
                continue
            yield Recipe(key, version, kind, path, inner=0)
            if kind in _NESTED and _has_arrays(field, version):
                yield Recipe(key, version, kind, path, inner=1)
        if field.struct is not None and version in schema.flexible:
            yield Recipe(key, version, Kind.MINIMAL, path, inner=0, tags=1)
            yield Recipe(key, version, Kind.MINIMAL, path, inner=0, tags=50)
        if version in field.nullable:
            yield Recipe(key, version, Kind.SAME, nulls=(path,))
        if field.struct is not None and any(
            one.attribute == "name" and version in one.nullable for one in field.struct.fields
        ):
            for kind in (Kind.SAME, Kind.EXISTING, Kind.UNKNOWN):
                yield Recipe(key, version, kind, path, nulls=(f"{path}.name",))
    for kind in (Kind.SAME, Kind.LONGEST, Kind.INVALID, Kind.NULL):
        yield Recipe(key, version, kind, inner=1)
    if version in schema.flexible:
        yield Recipe(key, version, Kind.MINIMAL, tags=SIZE_MAX // tag_size() - 100, inner=0)


def arrays_of(schema: StructSchema, version: int, prefix: str = "") -> Iterator[tuple[str, Field]]:
    """Yield every array with its path, the outer ones first."""
    for field in schema.fields:
        if version in field.versions:
            if field.is_array:
                yield prefix + field.attribute, field
            if field.struct is not None:
                yield from arrays_of(field.struct, version, f"{prefix}{field.attribute}.")


def _has_text(field: Field, version: int) -> bool:
    if field.struct is None:
        return field.element == "string"
    inside = (one for one in field.struct.fields if version in one.versions)
    return any(one.element == "string" or (one.struct is not None and _has_text(one, version)) for one in inside)


def _has_arrays(field: Field, version: int) -> bool:
    return field.struct is not None and any(True for _ in arrays_of(field.struct, version))


def known_attacks(key: ApiKey) -> Iterator[Recipe]:
    """Yield requests whose cost the schema does not show."""
    version = (API_TABLE | TELEMETRY_TABLE)[key].max_version
    base = Recipe(key, version, Kind.SAME)
    match key:
        case ApiKey.PRODUCE:
            for note in HOSTILE:
                yield Recipe(
                    key,
                    9,
                    Kind.SAME,
                    values=(("topic_data.partition_data.records", hostile_batch(note, SIZE_MAX)),),
                    note=f"a batch with {note}",
                )
        case ApiKey.METADATA:
            yield Recipe(
                key, 8, Kind.UNKNOWN, "topics", size=8_000, values=(("allow_auto_topic_creation", True),),
                note="1,000 topics to create",
            )  # fmt: skip
        case ApiKey.CREATE_TOPICS:
            yield base.with_value("topics.name", "wide").with_value("topics.num_partitions", 10_000)
            yield Recipe(key, version, Kind.UNKNOWN, "topics", size=30_000, inner=0, note="1,000 topics")
            yield Recipe(
                key, version, Kind.UNKNOWN, "topics", inner=0, values=(("validate_only", True),), note="validate only"
            )
        case ApiKey.CREATE_PARTITIONS:
            yield base.with_value("topics.count", 10_000).with_value("topics.assignments", None)
        case ApiKey.JOIN_GROUP:
            yield base.with_value("group_id", "new group").with_value("protocols.metadata", bytes(990_000))
            yield Recipe(
                key, version, Kind.UNKNOWN, "protocols", values=(("group_id", "new group"),), note="many protocols"
            )
        case ApiKey.CONSUMER_GROUP_HEARTBEAT:
            for note, pattern in _patterns().items():
                yield Recipe(key, version, Kind.SAME, values=_joining(pattern), nulls=("topic_partitions",), note=note)
        case ApiKey.LIST_TRANSACTIONS:
            for note, pattern in _patterns().items():
                yield Recipe(
                    key, version, Kind.SAME, inner=0, values=(("transactional_id_pattern", pattern),), note=note
                )
        case ApiKey.FETCH:
            yield Recipe(key, version, Kind.EXISTING, "topics", values=(("session_epoch", -1),), note="no session")
            yield Recipe(key, 11, Kind.EXISTING, "topics", values=(("session_epoch", 0),), note="a session, by name")
        case ApiKey.OFFSET_COMMIT:
            yield Recipe(
                key, 8, Kind.UNKNOWN, "topics.partitions", size=752_000,
                values=(("topics.name", "t-000"), ("group_id", "g" * 249), ("generation_id_or_member_epoch", -1)),
                note="one group's long name in every record",
            )  # fmt: skip
        case ApiKey.DESCRIBE_CONFIGS:
            yield Recipe(
                key, 1, Kind.SAME, "resources", size=83_000, nulls=("resources.configuration_keys",),
                values=(("resources.resource_name", ""), ("resources.resource_type", 4)), note="a broker many times",
            )  # fmt: skip
            yield Recipe(
                key, version, Kind.SAME, "resources", nulls=("resources.configuration_keys",),
                values=(("include_synonyms", True), ("include_documentation", True)), note="one topic, with synonyms",
            )  # fmt: skip


def _joining(pattern: str) -> tuple[tuple[str, object], ...]:
    return (("group_id", "patterns"), ("member_id", "member"), ("subscribed_topic_regex", pattern), ("member_epoch", 0))


def _patterns() -> dict[str, str]:
    return {
        "a pattern that backtracks": "(t+)+" * 50 + "$",
        "a pattern of nested counts": "(((t{0,100}){0,100}){0,100}){0,100}",
        "a pattern of many counts": "(.{0,900})" * 3_000,
        "a pattern of 32,000 bytes": "(t|.)?" * 5_300,
    }
