"""Declarations of extension types, derived from Python sources; and the modules of the request path."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

from scripts.extension_types import ExtensionType, copy_with_declarations, declarations, extension_types
from tailrace.model.kernel_forms import KERNELS, REQUEST_PATH

SOURCE = Path(__file__).parents[3] / "src"
ANIMAL = """
class Animal:
    __slots__ = ("name", "sound")
    legs = 4

    def __init__(self, name):
        self.name = name
        self.age: int = 0

    @property
    def is_old(self):
        return self.age > 9
"""
DOG = "class Dog(Animal):\n    def __init__(self, owner):\n        self.owner = self.name = owner\n"


def test_attributes_are_slots_and_what_methods_assign_without_names_of_the_class() -> None:
    assert extension_types({"zoo": ANIMAL})["Animal"] == ExtensionType("zoo", "Animal", None, ("name", "sound", "age"))


def test_a_class_has_only_its_own_attributes_beside_those_of_its_base() -> None:
    found = extension_types({"dogs": DOG, "zoo": ANIMAL})
    assert found["Dog"] == ExtensionType("dogs", "Dog", "Animal", ("owner",))
    assert declarations("dogs", found) == (
        "from zoo cimport Animal\n\ncdef class Dog(Animal):\n    cdef public object owner\n"
    )


@pytest.mark.parametrize(
    "head", ["@final\nclass One:", "class One(A, B):", "class One(Other):", "class One(metaclass=M):"]
)
def test_a_class_with_a_decorator_or_an_unknown_base_stays_an_ordinary_one(head: str) -> None:
    found = extension_types({"zoo": f"{head}\n    __slots__ = ('name',)\n"})
    assert found == {}
    assert declarations("zoo", found) == ""


def test_a_module_that_has_not_changed_keeps_its_copy_and_its_declarations(tmp_path: Path) -> None:
    copy_with_declarations(SOURCE, tmp_path, REQUEST_PATH)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.p*")}
    copies = copy_with_declarations(SOURCE, tmp_path, REQUEST_PATH)
    assert [name for name, _ in copies] == list(REQUEST_PATH)
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.p*")} == before


@pytest.mark.parametrize("name", REQUEST_PATH)
def test_every_slot_of_the_request_path_is_declared(name: str) -> None:
    found = extension_types({one: (SOURCE / f"{one.replace('.', '/')}.py").read_text() for one in REQUEST_PATH})
    module: ModuleType = import_module(name)
    for kind in (one for one in found.values() if one.module == name):
        slots = set(getattr(vars(module)[kind.name], "__slots__", ()))
        declared = set[str]()
        base: ExtensionType | None = kind
        while base is not None:
            declared |= set(base.attributes)
            base = None if base.base is None else found[base.base]
        assert slots <= declared


def test_a_module_is_a_kernel_or_part_of_the_request_path_and_not_both() -> None:
    assert not set(KERNELS) & set(REQUEST_PATH)
