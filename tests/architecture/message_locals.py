"""The local names of a function that are messages of the protocol, as far as its text shows that.

A name is a message if it is annotated with a message class, or made by one, or by a function that is annotated to
return one. What is read from a message is a message too: a field, an element, the target of a loop. `self.name` counts
as a name in all methods of its class.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

_SOURCES = ("tailrace.protocol.messages", "tailrace.protocol.message")
_MAKERS = {"response_class", "request_class"}  # they return the message class of an API


def message_classes(tree: ast.Module) -> set[str]:
    """Return the names in a module that stand for message classes: imported ones, and aliases of them."""
    names = set(_MAKERS)
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module in _SOURCES:
            names |= {one.asname or one.name for one in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module == "tailrace.protocol":
            names |= {one.asname or one.name for one in node.names if one.name == "messages"}
    for node in tree.body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None and _mentions(node.value, names):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names |= {one.id for one in targets if isinstance(one, ast.Name)}
    return names


def functions_that_return_messages(tree: ast.Module) -> set[str]:
    classes = message_classes(tree)
    return {
        node.name
        for node in tree.body
        if isinstance(node, ast.FunctionDef) and node.returns is not None and _mentions(node.returns, classes)
    }


def is_message(node: ast.expr, known: set[str]) -> bool:
    """Return True if an expression is a known message, or is read from one."""
    while True:
        if _name(node) in known:
            return True
        if isinstance(node, ast.Attribute | ast.Subscript):
            node = node.value
        elif isinstance(node, ast.Call):
            node = node.func
        else:
            return False


def messages_in(scope: ast.AST, classes: set[str], makers: set[str], known: set[str]) -> set[str]:
    """Return the names of messages in a function or a class, with those that are known around it."""
    found = set(known)
    before = -1
    while len(found) > before:
        before = len(found)
        for node in ast.walk(scope):
            found |= {name for one in _bound(node, classes, makers, found) if (name := _name(one)) is not None}
    return found


def _bound(node: ast.AST, classes: set[str], makers: set[str], known: set[str]) -> Iterator[ast.AST]:
    """Yield the names that a node binds to messages."""
    if isinstance(node, ast.arg) and node.annotation is not None and _mentions(node.annotation, classes):
        yield ast.Name(node.arg)
    elif isinstance(node, ast.AnnAssign) and _mentions(node.annotation, classes):
        yield node.target
        yield ast.Attribute(ast.Name("self"), node.target.id) if isinstance(node.target, ast.Name) else node.target
    elif isinstance(node, ast.Assign) and _yields_messages(node.value, classes, makers, known):
        for target in node.targets:
            yield from _targets(target)
    elif isinstance(node, ast.AnnAssign | ast.NamedExpr) and node.value is not None:
        if _yields_messages(node.value, classes, makers, known):
            yield node.target
    elif isinstance(node, ast.For | ast.comprehension) and _yields_messages(node.iter, classes, makers, known):
        yield from _targets(node.target)


def _yields_messages(value: ast.expr, classes: set[str], makers: set[str], known: set[str]) -> bool:
    return any(
        _name(node) in known
        or (isinstance(node, ast.Call) and (_name(node.func) in makers or _mentions(node.func, classes)))
        for node in ast.walk(value)
    )


def _mentions(node: ast.AST, names: set[str]) -> bool:
    return any(
        (isinstance(one, ast.Name) and one.id in names)
        or (isinstance(one, ast.Constant) and isinstance(one.value, str) and one.value.split(".")[0] in names)
        for one in ast.walk(node)
    )


def _targets(target: ast.expr) -> Iterator[ast.expr]:
    if isinstance(target, ast.Tuple | ast.List):
        for one in target.elts:
            yield from _targets(one)
    else:
        yield target


def _name(node: ast.AST) -> str | None:
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self":
        return f"self.{node.attr}"
    return None
