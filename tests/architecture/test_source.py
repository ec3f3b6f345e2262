"""The measurements behind the ratchets, on small pieces of code."""

from __future__ import annotations

import ast

import pytest

from tests.architecture.source import (
    _changed_attributes,
    counters,
    cycles,
    functions,
    message_fields,
    outside_attributes,
)


def changed(body: str) -> list[str]:
    scope = ast.parse("def work(self, other):\n" + "".join(f"    {line}\n" for line in body.splitlines())).body[0]
    return [ast.unparse(one) for one in _changed_attributes(scope)]


@pytest.mark.parametrize(
    "body",
    ["self.size = 1", "made = Log()\nmade.size = 1", "made = log.Segment()\nmade.size += 1", "other.sizes[0] = 1"],
)
def test_changes_of_own_objects_are_allowed(body: str) -> None:
    assert changed(body) == []


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("other.size = 1", "other.size"),
        ("other.size += 1", "other.size"),
        ("self.log.size = 1", "self.log.size"),
        ("one = find()\none.size: int = 1", "one.size"),
        ("a, other.size = 1, 2", "other.size"),
    ],
)
def test_changes_of_foreign_objects_are_found(body: str, found: str) -> None:
    assert changed(body) == [found]


KNOWN = frozenset({"hold", "hits", "error_code"})


@pytest.mark.parametrize(
    ("statement", "found"),
    [
        ("other.hold = 1", ["other.hold"]),
        ("other.check_hostname = True", []),  # no class of the source has such an attribute
        ("other.error_code = 1", ["other.error_code"]),  # a field of messages, but `other` may be anything
        ("other.hits += 1", []),
        ("other.hits -= 1", ["other.hits"]),
        ("other.hits = 1", ["other.hits"]),
        ("other.hold += 1", ["other.hold"]),
    ],
)
def test_attributes_of_libraries_and_additions_to_counters_do_not_count(statement: str, found: list[str]) -> None:
    tree = ast.parse(f"def work(other):\n    {statement}\n")
    assert [ast.unparse(one) for one in outside_attributes(tree, KNOWN, frozenset({"hits"}))] == found


@pytest.mark.parametrize(
    "body",
    [
        "def work(one: FetchResponse): one.error_code = 1",
        "def work(one: list[FetchResponse]):\n    for each in one: each.error_code = 1",
        "def work(found):\n    one = FetchResponse.read(found)\n    one.topics[0].error_code = 1",
        "def work(found):\n    one: FetchResponse = found\n    def inside(): one.error_code = 1",
        "def work(key):\n    one = response_class(key)()\n    one.error_code = 1",
        "class A:\n    def __init__(self): self.one = FetchResponse()\n    def work(self): self.one.error_code = 1",
    ],
)
def test_fields_of_known_messages_do_not_count(body: str) -> None:
    tree = ast.parse(f"from tailrace.protocol.messages import FetchResponse\n{body}\n")
    assert outside_attributes(tree, KNOWN, frozenset()) == []
    without = ast.parse(f"{body}\n".replace("FetchResponse", "find").replace("response_class", "find"))
    assert [one.attr for one in outside_attributes(without, KNOWN, frozenset())] == ["error_code"]


def test_attributes_of_the_modules_own_classes_do_not_count() -> None:
    tree = ast.parse("class A:\n    hold: int\ndef work(other):\n    other.hold = 1\n")
    assert outside_attributes(tree, KNOWN, frozenset()) == []


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("    a: int = 0\n    b: int = 0", {"a", "b"}),
        ("    def __init__(self):\n        self.a = 0\n        self.b = self.c = 0", {"a", "b", "c"}),
        ("    a: int = 0\n    b: str = ''", set()),
        ("    a: int = 0\n    b: int", set()),
        ("    def __init__(self, b):\n        self.a = 0\n        self.b = b", set()),
        ("    def __init__(self, b):\n        self.a, self.b = b", set()),
        ("    a: int = 0", set()),
    ],
)
def test_a_class_consists_of_counters_if_all_its_attributes_start_at_zero(body: str, found: set[str]) -> None:
    assert counters(ast.parse(f"class A:\n{body}\n")) == found


def test_cycles_are_found_through_other_modules() -> None:
    graph = {"a": {"b"}, "b": {"c"}, "c": {"b", "d"}, "d": set(), "e": {"a"}}
    assert cycles(graph) == [["b", "c"]]


def test_functions_are_named_with_their_class() -> None:
    tree = ast.parse("class A:\n    def f(self): ...\ndef g():\n    def h(): ...\n")
    assert [name for name, _ in functions(tree)] == ["A.f", "g", "g.h"]


def test_the_stubs_name_the_fields_of_messages() -> None:
    assert {"error_code", "throttle_time_ms", "topics"} <= message_fields()
