"""The layout of the packages: docstrings, manual pages and links."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tests.architecture.source import MODULES, ROOT, name_of, tree_of

PAGES = [path for path in MODULES if path.name == "__init__.py"]


def test_every_module_has_a_docstring() -> None:
    assert [name_of(path) for path in MODULES if not ast.get_docstring(tree_of(path))] == []


@pytest.mark.parametrize("path", PAGES, ids=name_of)
def test_a_package_holds_no_code_of_its_own(path: Path) -> None:
    nodes = tree_of(path).body
    assert all(isinstance(node, ast.Expr | ast.Import | ast.ImportFrom | ast.Assign) for node in nodes)


@pytest.mark.parametrize("path", PAGES, ids=name_of)
def test_a_package_names_what_it_holds(path: Path) -> None:
    """The docstring of a package is its manual page: it names every module and every sub-package."""
    text = ast.get_docstring(tree_of(path)) or ""
    held = [one.name for one in path.parent.glob("*.py") if one.name != "__init__.py"]
    held += [f"{one.parent.name}/" for one in path.parent.glob("*/__init__.py")]
    assert [name for name in held if not re.search(rf"(?<![\w/]){re.escape(name)}", text)] == []


def test_links_in_the_documents_lead_somewhere() -> None:
    pages = [path for path in ROOT.rglob("*.md") if not path.relative_to(ROOT).parts[0].startswith(".")]
    broken = []
    for page in pages:
        for target in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
            if not target.startswith("http") and not page.parent.joinpath(target).exists():
                broken.append(f"{page.relative_to(ROOT)} → {target}")
    assert broken == []


def test_the_architecture_page_names_modules_that_exist() -> None:
    names = {f"/{name_of(path)}" for path in MODULES}
    text = (ROOT / "ARCHITECTURE.md").read_text()
    named = [name for name in re.findall(r"`([\w/]+\.py)`", text) if not name.startswith("tests/")]
    assert [name for name in named if not any(one.endswith(f"/{name}") for one in names)] == []
