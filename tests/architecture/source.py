"""The source tree as the architecture tests see it: modules, imports, functions, assignments.

Every measurement returns a mapping from a name to a number, so that `ratchets.py` can compare it with the recorded
exceptions.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TypeAlias

from tests.architecture.message_locals import (
    functions_that_return_messages,
    is_message,
    message_classes,
    messages_in,
)

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "tailrace"
MODULES = sorted(SOURCE.rglob("*.py"))
PACKAGES = [path.parent for path in MODULES if path.name == "__init__.py"]

Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef


def name_of(path: Path) -> str:
    return path.relative_to(SOURCE).as_posix()


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


# ------------------------------------------------------------------------------------------------------------- imports


def module_name(path: Path) -> str:
    parts = ("tailrace", *path.relative_to(SOURCE).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports() -> dict[str, set[str]]:
    """Return the modules that each module imports anywhere: at its top, in functions and for type checkers."""
    names = {module_name(path): path for path in MODULES}
    graph: dict[str, set[str]] = {}
    for name, path in names.items():
        found = set()
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.Import):
                found |= {one.name for one in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module is not None:
                for one in node.names:
                    full = f"{node.module}.{one.name}"
                    found.add(full if full in names else node.module)
        graph[name] = (found & names.keys()) - {name}
    return graph


def cycles(graph: dict[str, set[str]]) -> list[list[str]]:
    """Return the groups of modules that import each other, directly or through others (Tarjan's algorithm)."""
    order: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(name: str) -> None:
        order[name] = low[name] = len(order)
        stack.append(name)
        for other in graph[name]:
            if other not in order:
                visit(other)
                low[name] = min(low[name], low[other])
            elif other in stack:
                low[name] = min(low[name], order[other])
        if low[name] == order[name]:
            group = stack[stack.index(name) :]
            del stack[stack.index(name) :]
            if len(group) > 1:
                found.append(sorted(group))

    for name in graph:
        if name not in order:
            visit(name)
    return sorted(found)


# ----------------------------------------------------------------------------------------------------------- functions


def functions(node: ast.AST, prefix: str = "") -> Iterator[tuple[str, Function]]:
    """Yield every function below a node with its qualified name."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            name = f"{prefix}{child.name}"
            if not isinstance(child, ast.ClassDef):
                yield name, child
            yield from functions(child, f"{name}.")
        else:
            yield from functions(child, prefix)


def function_lines() -> dict[str, int]:
    """Return the length of every function in lines, from `def` to its last statement."""
    return {
        f"{name_of(path)}::{name}": (node.end_lineno or 0) - node.lineno + 1
        for path in MODULES
        for name, node in functions(tree_of(path))
    }


def constructor_parameters() -> dict[str, int]:
    """Return the number of parameters of every `__init__`, without `self`."""
    return {
        f"{name_of(path)}::{name.removesuffix('.__init__')}": len(node.args.posonlyargs)
        + len(node.args.args)
        + len(node.args.kwonlyargs)
        - 1
        for path in MODULES
        for name, node in functions(tree_of(path))
        if node.name == "__init__"
    }


# --------------------------------------------------------------------------------------------------------- assignments


def outside_assignments() -> dict[str, int]:
    """Return how often each module changes an attribute of an object that belongs to another module.

    `other.attribute = value` and `other.attribute += value` count, unless
    - `other` is `self` or `cls`, or a local variable to which the same function assigns a new object: a call of a
      class, of `cls`, `copy` or `__new__`;
    - a class of the same module has an attribute of that name, so that the object is probably one of its own;
    - `other` is known to be a message of the protocol, which handlers fill in (`message_locals.py`);
    - no class of the source has an attribute of that name: the object is a library's (an SSLContext, an OSError);
    - a number is added to a counter (`other.bytes_in += size`): see `counters`.
    """
    counts = {
        name_of(path): len(outside_attributes(tree_of(path), _all_attributes(), _all_counters())) for path in MODULES
    }
    return {name: count for name, count in counts.items() if count}


def outside_attributes(tree: ast.Module, known: frozenset[str], counted: frozenset[str]) -> list[ast.Attribute]:
    """Return the assignments of a module that count; `known`: the attributes of all classes, `counted`: counters."""
    own = _own_attributes(tree)
    added = {id(node.target) for node in ast.walk(tree) if isinstance(node, ast.AugAssign) and _is_add(node)}
    return [
        one
        for scope, messages in _scopes(tree, message_classes(tree), set())
        for one in _changed_attributes(scope)
        if one.attr in known
        and one.attr not in own
        and not (id(one) in added and one.attr in counted)
        and not (one.attr in message_fields() and is_message(one.value, messages))
    ]


def _scopes(node: ast.AST, classes: set[str], messages: set[str]) -> Iterator[tuple[ast.AST, set[str]]]:
    """Yield a module and its functions, each with the names that are messages in it."""
    if isinstance(node, ast.Module):
        yield node, messages
    for child in ast.iter_child_nodes(node):
        inside = messages
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            inside = messages_in(child, classes, _message_makers(), messages)
            if isinstance(child, ast.ClassDef):
                inside = messages | {name for name in inside if name.startswith("self.")}
            else:
                yield child, inside
        yield from _scopes(child, classes, inside)


@cache
def _message_makers() -> set[str]:
    return set().union(*(functions_that_return_messages(tree_of(path)) for path in MODULES))


def _is_add(node: ast.AugAssign) -> bool:
    return isinstance(node.op, ast.Add)


@cache
def _all_attributes() -> frozenset[str]:
    return frozenset().union(*(_own_attributes(tree_of(path)) for path in MODULES))


@cache
def _all_counters() -> frozenset[str]:
    return frozenset().union(*(counters(tree_of(path)) for path in MODULES))


def counters(tree: ast.Module) -> set[str]:
    """Return the attributes of classes that consist of counters: at least two attributes, and all of them start at 0.

    Any code that counts may add to such an object."""
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            found = _initial_values(node)
            if len(found) > 1 and all(isinstance(one, ast.Constant) and one.value == 0 for one in found.values()):
                names |= found.keys()
    return names


def _initial_values(node: ast.ClassDef) -> dict[str, ast.expr | None]:
    """Return the attributes of a class with their first values: fields of a dataclass, assignments in `__init__`."""
    found: dict[str, ast.expr | None] = {
        one.target.id: one.value
        for one in node.body
        if isinstance(one, ast.AnnAssign)
        and isinstance(one.target, ast.Name)
        and not ast.unparse(one.annotation).startswith(("ClassVar", "Final"))
    }
    for one in node.body:
        if isinstance(one, ast.FunctionDef) and one.name == "__init__":
            for made in ast.walk(one):
                if isinstance(made, ast.Assign | ast.AnnAssign):
                    targets = made.targets if isinstance(made, ast.Assign) else [made.target]
                    for target in targets:
                        for each in target.elts if isinstance(target, ast.Tuple) else [target]:
                            if isinstance(each, ast.Attribute) and _is_name(each.value, {"self"}):
                                found[each.attr] = made.value
    return found


@cache
def message_fields() -> frozenset[str]:
    """Return the attributes of all messages, as the type stubs of the protocol list them."""
    stubs = ast.parse((SOURCE / "protocol" / "messages.pyi").read_text())
    return frozenset(
        node.target.id
        for node in ast.walk(stubs)
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
    )


def _own_attributes(tree: ast.Module) -> set[str]:
    """Return the names of the attributes that the classes of a module declare or assign to themselves."""
    names = set()
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Attribute)
            and isinstance(node.ctx, ast.Store)
            and _is_name(node.value, {"self", "cls"})
        ):
            names.add(node.attr)
        elif isinstance(node, ast.ClassDef):
            declared = [one.target for one in node.body if isinstance(one, ast.AnnAssign)]
            declared += [target for one in node.body if isinstance(one, ast.Assign) for target in one.targets]
            names |= {one.id for one in declared if isinstance(one, ast.Name)}
    return names


def _changed_attributes(scope: ast.AST) -> Iterator[ast.Attribute]:
    """Yield the attributes of objects that a scope assigns to but did not make."""
    nodes = list(_own_nodes(scope))
    own = {"self", "cls"}
    for node in nodes:
        if isinstance(node, ast.Assign) and _is_new(node.value):
            own |= {target.id for target in node.targets if isinstance(target, ast.Name)}
        elif isinstance(node, ast.AnnAssign | ast.NamedExpr) and node.value is not None and _is_new(node.value):
            own |= {node.target.id} if isinstance(node.target, ast.Name) else set()
    for node in nodes:
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and not _is_name(node.value, own):
            yield node


def _is_name(node: ast.AST, names: set[str]) -> bool:
    return isinstance(node, ast.Name) and node.id in names


def _own_nodes(scope: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes of a scope without those of the functions inside it."""
    for child in ast.iter_child_nodes(scope):
        if not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            yield child
            yield from _own_nodes(child)


def _is_new(value: ast.AST) -> bool:
    if not isinstance(value, ast.Call):
        return False
    called = value.func
    name = called.id if isinstance(called, ast.Name) else called.attr if isinstance(called, ast.Attribute) else ""
    return name.lstrip("_")[:1].isupper() or name in ("cls", "copy", "__new__")


# --------------------------------------------------------------------------------------------------------------- sizes


def module_lines() -> dict[str, int]:
    return {name_of(path): len(path.read_text().splitlines()) for path in MODULES}


def package_entries() -> dict[str, int]:
    """Return the number of modules and sub-packages of every package."""
    return {
        name_of(package) if package != SOURCE else "tailrace": sum(
            one.name != "__init__.py" for one in package.glob("*.py")
        )
        + sum(1 for _ in package.glob("*/__init__.py"))
        for package in PACKAGES
    }
