"""Kernels that Cython compiles cannot share their smallest helpers without a call between modules for each byte: they
have copies, which must not drift apart."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

import pytest

from tailrace.model import kernel_forms

SOURCE = Path(__file__).parents[2] / "src" / "tailrace"
KERNELS = sorted(path.with_suffix(".py").relative_to(SOURCE).as_posix() for path in SOURCE.rglob("*.pxd"))


def functions(module: str) -> dict[str, str]:
    """Return the statements of each function of a module, without its docstring."""
    return {
        node.name: "\n".join(map(ast.unparse, node.body[1:] if ast.get_docstring(node) else node.body))
        for node in ast.parse((SOURCE / module).read_text()).body
        if isinstance(node, ast.FunctionDef)
    }


COPIES: dict[str, dict[str, str]] = defaultdict(dict)
for kernel in KERNELS:
    for name, statements in functions(kernel).items():
        COPIES[name][kernel] = statements


def test_every_module_with_c_types_is_listed_as_a_kernel() -> None:
    assert sorted(f"{name.replace('.', '/')}.py" for name in kernel_forms.KERNELS) == [
        f"tailrace/{module}" for module in KERNELS
    ]


@pytest.mark.parametrize("name", [name for name, copies in COPIES.items() if len(copies) > 1])
def test_copies_are_the_same(name: str) -> None:
    assert len(set(COPIES[name].values())) == 1, f"{name} differs between {', '.join(COPIES[name])}"
