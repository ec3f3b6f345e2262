"""Schemas: version ranges, names, and that the files hold together."""

from __future__ import annotations

import re

import pytest

from tailrace.protocol.codegen.schema import (
    SCHEMAS,
    MessageSchema,
    StructSchema,
    Versions,
    attribute_name,
    index,
    load_schema,
    message_names,
)
from tailrace.protocol.errors import UnsupportedVersion


@pytest.mark.parametrize(
    ("text", "inside", "outside"),
    [("3", [3], [2, 4]), ("3-5", [3, 5], [2, 6]), ("3+", [3, 32767], [2]), ("none", [], [0, 1]), (None, [], [0])],
)
def test_a_version_range_contains_the_versions_of_its_notation(
    text: str | None, inside: list[int], outside: list[int]
) -> None:
    versions = Versions.parse(text)
    assert all(version in versions for version in inside)
    assert not any(version in versions for version in outside)
    assert bool(versions) == bool(inside)


@pytest.mark.parametrize("text", ["none", "3", "3-5"])
def test_a_version_range_is_shown_as_it_is_written(text: str) -> None:
    assert str(Versions.parse(text)) == text
    assert list(Versions.parse("3-5")) == [3, 4, 5]


@pytest.mark.parametrize(
    ("name", "attribute"),
    [
        ("MaxWaitMs", "max_wait_ms"),
        ("isKRaftController", "is_kraft_controller"),
        ("V3AndBelowTopics", "v3_and_below_topics"),
        ("Enable2Pc", "enable2pc"),
        ("group", "group"),
    ],
)
def test_field_names_become_python_attribute_names(name: str, attribute: str) -> None:
    assert attribute_name(name) == attribute


def test_an_unknown_message_is_refused() -> None:
    with pytest.raises(UnsupportedVersion, match="NoSuchRequest"):
        load_schema("NoSuchRequest")


def test_the_index_names_every_schema_file_and_no_other() -> None:
    listed = {f"{family}/{name}.json" for family, names in index()["families"].items() for name in names}
    present = {str(path.relative_to(SCHEMAS)) for path in SCHEMAS.rglob("*.json")} - {"index.json"}
    assert listed == present
    assert len(listed) == len(message_names()) > 270


@pytest.mark.parametrize("name", message_names())
def test_a_schema_is_consistent(name: str) -> None:
    schema = load_schema(name)
    assert schema.name == name
    assert schema.versions
    _check_struct(schema, schema)


def _check_struct(struct: StructSchema, message: MessageSchema) -> None:
    attributes = [field.attribute for field in struct.fields]
    assert len(set(attributes)) == len(attributes)
    assert all(re.fullmatch("[a-z][a-z0-9_]*", attribute) for attribute in attributes)
    for field in struct.fields:
        for version in message.versions:
            if version in field.tagged:
                assert version in field.versions
                assert version in message.flexible
            if version in field.nullable:
                assert version in field.versions
        if field.default is None and field.type != "records":
            assert str(field.nullable) == str(field.versions)
        assert bool(field.tagged) == (field.tag is not None)
        if field.struct is not None:
            _check_struct(field.struct, message)
    for version in message.versions:
        tags = [field.tag for field in struct.tagged(version)]
        assert len(set(tags)) == len(tags)


@pytest.mark.parametrize(
    ("name", "versions", "removed"),
    [
        ("FetchRequest", "0-18", "0-3"),
        ("ProduceRequest", "0-13", "0-2"),
        ("ListOffsetsRequest", "0-11", "0"),
        ("OffsetCommitRequest", "0-10", "0-1"),
        ("OffsetFetchResponse", "0-10", "0"),
        ("UpdateMetadataRequest", "0-8", "0-8"),
        ("ShareFetchRequest", "1-2", "none"),  # version 0 never was more than a preview
        ("MetadataRequest", "0-13", "none"),
    ],
)
def test_versions_that_kafka_4_dropped_are_here(name: str, versions: str, removed: str) -> None:
    schema = load_schema(name)
    assert (str(schema.versions), str(schema.removed)) == (versions, removed)


def test_requests_and_responses_come_in_pairs_of_the_same_versions() -> None:
    for facts in index()["apis"].values():
        request, response = (load_schema(facts["name"] + kind) for kind in ("Request", "Response"))
        assert (request.type, response.type) == ("request", "response")
        assert request.api_key == response.api_key
        assert str(request.versions) == str(response.versions)
        assert request.flexible.low == response.flexible.low
