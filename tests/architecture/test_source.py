"""The measurements behind the ratchets, on small pieces of code."""

from __future__ import annotations

import ast

import pytest

from tests.architecture.source import _changed_attributes, cycles, functions, message_fields


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


def test_cycles_are_found_through_other_modules() -> None:
    graph = {"a": {"b"}, "b": {"c"}, "c": {"b", "d"}, "d": set(), "e": {"a"}}
    assert cycles(graph) == [["b", "c"]]


def test_functions_are_named_with_their_class() -> None:
    tree = ast.parse("class A:\n    def f(self): ...\ndef g():\n    def h(): ...\n")
    assert [name for name, _ in functions(tree)] == ["A.f", "g", "g.h"]


def test_the_stubs_name_the_fields_of_messages() -> None:
    assert {"error_code", "throttle_time_ms", "topics"} <= message_fields()
