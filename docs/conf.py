"""Configuration of the documentation site: `make docs`. docs/decisions/0035-docs-site.md says why Sphinx.

The pages are plain Markdown, as GitHub shows it. The navigation is added at build time: each folder is a chapter.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pygments.lexers import TextLexer

if TYPE_CHECKING:
    from sphinx.application import Sphinx

project = "Tailrace"
author = "The Tailrace authors"
copyright = "The Tailrace authors, Apache License 2.0"  # noqa: A001 - Sphinx's name

# The root of the repository is the source, so that links to pages outside docs/ lead somewhere.
include_patterns = ["*.md", "docs/**", "benchmarks/RESULTS.md", "examples/**/*.md"]
root_doc = "docs/index"
extensions = ["myst_parser"]
myst_heading_anchors = 4
html_theme = "furo"
html_title = "Tailrace"
html_show_sphinx = False
html_copy_source = False

CHAPTERS = {
    "Tutorials": ["tutorials/quickstart", "tutorials/*"],
    "How-to": ["how-to/*"],
    "Reference": ["reference/*", "reference/formats/*"],
    "Explanation": ["explanation/*", "decisions/index"],
    "The project": ["/README", "/ARCHITECTURE", "/CONTRIBUTING", "/CHANGELOG", "/benchmarks/RESULTS", "/examples/**"],
}


def navigation(caption: str, names: list[str]) -> str:
    lines = ["```{toctree}", ":hidden:", ":glob:", ":titlesonly:", f":caption: {caption}", "", *names, "```"]
    return "\n" + "\n".join(lines) + "\n"


def add_navigation(app: Sphinx, name: str, source: list[str]) -> None:
    if name == root_doc:
        source[0] += "".join(navigation(caption, names) for caption, names in CHAPTERS.items())
    elif name == "docs/decisions/index":
        source[0] += navigation("Decisions", ["0*"])


def setup(app: Sphinx) -> None:
    app.add_lexer("hex", TextLexer)
    app.connect("source-read", add_navigation)
