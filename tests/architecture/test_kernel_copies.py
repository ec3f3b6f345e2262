"""Kernels that Cython compiles cannot share their smallest helpers without a call between modules for each byte: they
have copies, which must not drift apart."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from pathlib import Path

import pytest

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


def test_the_makefile_compiles_these_modules() -> None:
    compiled = re.findall(r"src/tailrace/(\S*kernels|\S*columnar/\S+)", (SOURCE.parents[1] / "Makefile").read_text())
    assert sorted(f"{name}.py" for name in compiled) == KERNELS


@pytest.mark.parametrize("name", [name for name, copies in COPIES.items() if len(copies) > 1])
def test_copies_are_the_same(name: str) -> None:
    assert len(set(COPIES[name].values())) == 1, f"{name} differs between {', '.join(COPIES[name])}"
