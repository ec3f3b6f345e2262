"""The schemas prove themselves: extracted again from Kafka's jars, nothing changes."""

from __future__ import annotations

import pytest

from scripts.extract_schemas import Range, default_of, fetch_jar, main, merge_fields
from tests.support.kafka_install import KafkaInstallation


@pytest.mark.kafka
def test_extraction_leaves_no_difference(kafka: KafkaInstallation, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--check", "--jars", str(kafka.jars[0].parent)]) == 0
    assert capsys.readouterr().out == "280 messages, 0 changes\n"


def test_ranges_are_written_in_the_shortest_notation() -> None:
    valid = Range(2, 9)
    assert Range.of({4, 5, 6, 7, 8, 9}, valid) == "4+"
    assert Range.of({4, 5}, valid) == "4-5"
    assert Range.of({4}, valid) == "4"
    assert Range.of(set(), valid) is None
    with pytest.raises(SystemExit, match="are not a range"):
        Range.of({2, 4}, valid)


def test_the_string_null_is_a_default_and_a_json_null_is_none() -> None:
    assert default_of({"type": "string", "default": "null"}) is None
    assert default_of({"type": "[]int32", "default": None}) is ...
    assert default_of({"type": "int32", "default": "0x7fffffff"}) == 2**31 - 1
    assert default_of({"type": "int32", "default": "0"}) is ...
    assert default_of({"type": "bool", "default": "true"}) is True


def field(name: str, versions: set[int], kind: str = "int32") -> dict[str, object]:
    none: set[int] = set()
    ranges = {"versions": versions, "nullableVersions": none, "taggedVersions": none}
    flags = {"ignorable": False, "everywhere": False}
    return {"name": name, "type": kind, "flexibleVersions": None, "tag": None, "fields": [], **ranges, **flags}


def test_a_field_that_only_the_old_release_has_stays_in_its_place() -> None:
    new = [field("A", {2, 3}), field("C", {2, 3}), field("D", {3})]
    old = [field("A", {0, 1}), field("B", {0, 1}), field("C", {1})]
    merged = merge_fields(new, old, "Message")
    assert [(one["name"], sorted(one["versions"])) for one in merged] == [
        ("A", [0, 1, 2, 3]),
        ("B", [0, 1]),
        ("C", [1, 2, 3]),
        ("D", [3]),
    ]


def test_a_field_that_changed_its_type_is_refused() -> None:
    with pytest.raises(SystemExit, match=r"Message\.A is int64 now and was int32"):
        merge_fields([field("A", {2}, "int64")], [field("A", {1})], "Message")


def test_ignorable_is_taken_from_the_release_for_which_it_matters() -> None:
    new, old = field("A", {1, 2}) | {"everywhere": True}, field("A", set()) | {"ignorable": True}
    assert merge_fields([new], [old], "Message")[0]["ignorable"] is True
    with pytest.raises(SystemExit, match="it matters"):
        merge_fields([new | {"everywhere": False}], [old], "Message")


@pytest.mark.kafka
def test_jars_are_taken_from_the_directories_given_first(kafka: KafkaInstallation) -> None:
    jars = kafka.jars[0].parent
    assert fetch_jar("kafka-clients", kafka.version, [jars]).parent == jars
