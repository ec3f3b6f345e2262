"""Derive the Cython declarations of the request path from its Python sources.

setup.py copies the modules of `REQUEST_PATH` (`model/kernel_forms.py`) to a folder of their own. Beside each copy is
a .pxd that declares its classes as extension types: their attributes are fields of a C struct, so a compiled method
reads them without a dictionary. The attributes are those in `__slots__` and those that methods assign to `self`. There
is nothing to keep up to date by hand, and the Python sources show no trace of it.

A class stays an ordinary one if it has a decorator, several bases, or a base that is not an extension type.
"""

from __future__ import annotations

import ast
import shutil
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple


class ExtensionType(NamedTuple):
    """A class that becomes an extension type."""

    module: str
    name: str
    base: str | None
    attributes: tuple[str, ...]  # its own, without those of the base


def extension_types(sources: Mapping[str, str]) -> dict[str, ExtensionType]:
    """Return the extension types of modules by class name. `sources` has the source text by module name."""
    classes = {
        node.name: (module, node)
        for module, source in sources.items()
        for node in ast.parse(source).body
        if isinstance(node, ast.ClassDef)
    }
    found: dict[str, ExtensionType] = {}
    for name in classes:
        _add(name, classes, found)
    return found


def _add(
    name: str, classes: Mapping[str, tuple[str, ast.ClassDef]], found: dict[str, ExtensionType]
) -> ExtensionType | None:
    """Add a class after its base. Return None if it stays an ordinary class."""
    if name in found or name not in classes:
        return found.get(name)
    module, node = classes[name]
    if node.decorator_list or node.keywords or len(node.bases) > 1:
        return None
    base = None
    if node.bases:
        base = _add(ast.unparse(node.bases[0]), classes, found)
        if base is None:
            return None
    inherited = set(_all_attributes(base, found))
    own = dict.fromkeys(one for one in _attributes(node) if one not in inherited)
    found[name] = ExtensionType(module, name, None if base is None else base.name, tuple(own))
    return found[name]


def _all_attributes(kind: ExtensionType | None, found: Mapping[str, ExtensionType]) -> Iterator[str]:
    while kind is not None:
        yield from kind.attributes
        kind = None if kind.base is None else found[kind.base]


def _attributes(node: ast.ClassDef) -> Iterator[str]:
    """Yield the instance attributes of a class, some of them twice."""
    in_class = set(_names_in_class(node))
    for part in ast.walk(node):
        if isinstance(part, ast.Attribute) and isinstance(part.ctx, ast.Store):
            if isinstance(part.value, ast.Name) and part.value.id == "self" and part.attr not in in_class:
                yield part.attr
        elif isinstance(part, ast.Assign) and ast.unparse(part.targets[0]) == "__slots__":
            yield from (one.value for one in ast.walk(part.value) if isinstance(one, ast.Constant))  # type: ignore[misc]


def _names_in_class(node: ast.ClassDef) -> Iterator[str]:
    """Yield the names that belong to the class and not to an instance: methods, properties and constants."""
    for part in node.body:
        if isinstance(part, ast.FunctionDef):
            yield part.name
        elif isinstance(part, ast.Assign):
            yield from (ast.unparse(target) for target in part.targets)
        elif isinstance(part, ast.AnnAssign) and part.value is not None:
            yield ast.unparse(part.target)


def declarations(module: str, types: Mapping[str, ExtensionType]) -> str:
    """Return the .pxd of a module, or an empty text if it has no extension types."""
    lines: list[str] = []
    for kind in types.values():
        if kind.module != module:
            continue
        base = None if kind.base is None else types[kind.base]
        if base is not None and base.module != module:
            lines.insert(0, f"from {base.module} cimport {base.name}")
        lines += ["", f"cdef class {kind.name}:" if base is None else f"cdef class {kind.name}({base.name}):"]
        if base is None:
            lines.append("    cdef object __weakref__")
        lines += [f"    cdef public object {one}" for one in kind.attributes] or ["    pass"]
    return "\n".join([*lines, ""]) if lines else ""


def copy_with_declarations(source: Path, target: Path, modules: Iterable[str]) -> list[tuple[str, Path]]:
    """Copy modules, their packages and their declarations. Return each module's name and its copy.

    A file that has not changed keeps its time, so that it is not compiled again.
    """
    copies = []
    for module in modules:
        path = Path(f"{module.replace('.', '/')}.py")
        for one in (path, *(parent / "__init__.py" for parent in path.parents[:-1])):
            (target / one).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source / one, target / one)
        copies.append((module, target / path))
    types = extension_types({module: copy.read_text(encoding="utf-8") for module, copy in copies})
    for module, copy in copies:
        text, place = declarations(module, types), copy.with_suffix(".pxd")
        if text != (place.read_text(encoding="utf-8") if place.exists() else ""):
            place.write_text(text, encoding="utf-8")
    return copies
