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


@pytest.mark.parametrize("path", ["a Produce", "a Fetch", "a follower's Fetch", "an offset commit"])
def test_the_path_of_a_frequent_request_has_at_most_eight_files_named_in_full(path: str) -> None:
    """The numbered list is the path, from the handler down; the text after it has the side matter."""
    text = (ROOT / "ARCHITECTURE.md").read_text()
    found = re.search(rf"\n## \w+ of {path}\n(.*?)\n## ", text, re.DOTALL)
    assert found is not None, f"ARCHITECTURE.md has no path of {path}"
    steps = re.findall(r"^\d\. .*(?:\n   .*)*", found[1], re.MULTILINE)
    named = [name for step in steps for name in re.findall(r"`([\w/]+\.py)`", step)]
    modules = {name_of(one) for one in MODULES}
    files = {name for name in named if "/" in name}
    assert files <= modules
    assert {name.rsplit("/")[-1] for name in named} == {name.rsplit("/")[-1] for name in files}
    assert 4 <= len(files) <= 8
