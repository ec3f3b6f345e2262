"""Kernels that Cython compiles cannot share their smallest helpers without a call between modules for each byte: they
have copies, which must not drift apart."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "tailrace"
KERNELS = ("records/kernels.py", "records/columns.py", "records/column_encoder.py", "log/cleaner_kernels.py")


def body(module: str, name: str) -> str | None:
    """A function's statements without its docstring."""
    for node in ast.parse((SOURCE / module).read_text()).body:
        if isinstance(node, ast.FunctionDef) and node.name == name:
            return "\n".join(map(ast.unparse, node.body[1:] if ast.get_docstring(node) else node.body))
    return None


@pytest.mark.parametrize("name", ["_varint", "_varlong", "_varint_size", "_add", "_subtract", "_int32", "_broken"])
def test_copies_are_the_same(name: str) -> None:
    copies = [found for module in KERNELS if (found := body(module, name)) is not None]
    assert len(copies) > 1
    assert len(set(copies)) == 1
