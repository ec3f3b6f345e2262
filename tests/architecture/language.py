"""Plain words: a check of the English in docstrings, comments, messages, names and documents.

    python -m tests.architecture.language [PATH …]

prints every place under the paths that breaks a rule. The rules are the ones of CONTRIBUTING.md, "How we write":
sentences of at most 40 words, docstrings that open with a verb or a noun, and none of the words in `BANNED`. Names in
the code contain none of `BANNED_IN_NAMES`, and a function whose name asks a question (`is_…`, `has_…`) returns a bool.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
PLACES = ("src", "tests", "docs", "benchmarks", "examples", "scripts")
PAGES = ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md")
SENTENCE_WORDS_MAX = 40

# Words of the old dialect, each with the plain ones to use instead.
BANNED = {
    r"told|tells?": "report, return, log, notify",
    r"hears?\s+of|heard\s+of": "receive, learn",
    r"whoever|whomever|whom": "name the subject: client, caller, member, broker",
    r"anew": "again",
    r"no\s+more(?!\s+than)": "no longer",
    r"for\s+ever": "forever, unlimited, without expiry",
    r"(?:go|goes|went|going)\s+on(?!\s+to)": "continue, resume",
    r"shall": "must, is to",
    r"(?:is|are|be|was|were|all)\s+(?:ill|well)": "healthy, unhealthy, offline, correct",
    r"settles?|settled|settling": "name the action: decide, complete, resolve, persist",
    r"wish(?:es|ed)?": "request, setting",
    r"short(?:er)?\s+way|long(?:er)?\s+way": "fast path, general path",
    r"what\s+comes\s+most|of\s+which\s+nothing|as\s+if\s+nothing": "say it directly",
    r"lets?\s+(?:it|them|him)\s+be": "leave, ignore",
    r"says?\s+so|said\s+so": "report, log",
    r"looked\s+at": "check, read, examine",
    r"beside\s+the\s+loop": "on a worker thread, by a chore",
    r"is\s+not\s+a\s+text(?!\s+file)": "must be a string",
    r"stands?(?!\s+(?:for|alone)\b)": "be in, be at",
    r"(?<!there\s)(?:is|are|was|were)\s+no\s+(?!longer\b|more\b|such\b)(?=\w)": "is not a",
    r"(?<!there\s)(?:is|are)\s+none\s+of": "is not one of",
    r"(?:at\s+most\s+)?so\s+(?:many|long)\b(?!\s+as\b)(?![^.;]*\bthat\b)": "name the number, the size or the time",
}
BANNED_IN_NAMES = {
    "told",
    "tell",
    "tells",
    "said",
    "say",
    "says",
    "heard",
    "hear",
    "hears",
    "settle",
    "settles",
    "settled",
    "anew",
    "shall",
    "whom",
    "whoever",
    "ill",
    "wish",
    "wishes",
    "beaten",
    "standing",
}
# Whole names that do not say what they bound or do, each with the form to use instead.
BANNED_NAMES = {"at_least": "version_min, bytes_min", "rest_until": "back_off_until", "last_words": "last_lines"}
_ALLOWED_NAMES = {
    "TOLD", "SHALL",  # in the test of this check
    "settled", "SETTLED", "Settled", "check_settled", "settled_by", "settled_rows", "_settled_records",  # paid orders
}  # fmt: skip
_BANNED = [(re.compile(rf"\b(?:{words})\b", re.IGNORECASE), instead) for words, instead in BANNED.items()]
_OPENING = re.compile(r"(?:What|Whether|Who|Whom|Whose|Of)\b")
_NOUN_OPENING = re.compile(r"(?:An?|The|Each|Every|All|Some|Both|One|Two|Three|With|By)\b")
# "…; a KafkaError if it is unknown": a clause without a verb.
_BARE_ERROR = re.compile(
    r"(?:^|[;.]\s+)(?:an?\s+)?`?(?:[A-Z]\w*(?:Error|Config|Frame|Batch|Failed|Voter|Checkpoint|Type)|[A-Z]+(?:_[A-Z]+)+)`?\s+"
    r"(?:if|unless|until|for)\b"
)
# Tutorials, how-to pages, reference and explanation. A decision begins with its context instead.
_PAGES_WITH_READERS = re.compile(
    r"/docs/(?:(?:tutorials|how-to|reference|explanation)/.*|index\.md|decisions/index\.md)$"
)
_QUESTION_NAME = re.compile(r"_*(?:is|has)_")
_WORD_IN_NAME = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_CODE = re.compile(r"``[^`]*``|`[^`]*`")
_SENTENCE_END = re.compile(
    r"(?<=[.!?:;])[\s\"')\]]+(?=[\"'(\[A-Z`0-9*_])|\n\s*\n|\n\s*(?:[-*|#>]|\d+\.)\s*|\n(?=    |\s*\S+(?:\.py|/)  )"
)


class Finding(NamedTuple):
    path: Path
    line: int
    rule: str
    text: str

    def __str__(self) -> str:
        name = self.path.relative_to(ROOT) if self.path.is_relative_to(ROOT) else self.path
        return f"{name}:{self.line}: {self.rule}: {self.text}"


def findings_of(path: Path) -> list[Finding]:
    """Return the places of a Python module or a Markdown page that break a rule."""
    text = path.read_text()
    return list(_of_page(path, text) if path.suffix == ".md" else _of_module(path, text))


def _of_module(path: Path, text: str) -> Iterator[Finding]:
    tree = ast.parse(text)
    docstrings = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            docstring = ast.get_docstring(node)
            if docstring:
                place = node.body[0]
                docstrings.add(id(place.value))  # type: ignore[attr-defined]
                if _OPENING.match(docstring):
                    yield Finding(path, place.lineno, "docstring opens with a question word", _short(docstring))
                if _NOUN_OPENING.match(docstring) and _returns_a_value(node):
                    yield Finding(
                        path, place.lineno, "function docstring without a verb (better: Return …)", _short(docstring)
                    )
                if not isinstance(node, ast.Module) and _BARE_ERROR.search(docstring):
                    yield Finding(path, place.lineno, "error without a verb (better: Raise … if)", _short(docstring))
                yield from _of_prose(path, place.lineno, docstring)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
            yield from _banned(path, node.lineno, node.name.replace("_", " "))
    for node in ast.walk(tree):
        is_text = isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings
        if is_text and node.value.count(" ") >= 2:
            yield from _banned(path, node.lineno, _CODE.sub("CODE", node.value))
    yield from _of_names(path, tree)
    yield from _of_comments(path, text)


def _returns_a_value(node: ast.AST) -> bool:
    """Return True for a function with a result, except properties (nouns) and scripts (which describe their events)."""
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) or node.returns is None:
        return False
    is_property = any("property" in ast.unparse(one) for one in node.decorator_list)
    return not is_property and ast.unparse(node.returns) not in ("None", "NoReturn", "Script")


def _of_names(path: Path, tree: ast.AST) -> Iterator[Finding]:
    for node in ast.walk(tree):
        name = _defined_name(node)
        if name in BANNED_NAMES:
            yield Finding(
                path, getattr(node, "lineno", 1), f"a name that explains nothing (better: {BANNED_NAMES[name]})", name
            )
        banned = BANNED_IN_NAMES.intersection(word.lower() for word in _WORD_IN_NAME.findall(name))
        if banned and name not in _ALLOWED_NAMES and not name.startswith("test_"):
            yield Finding(path, getattr(node, "lineno", 1), f'"{min(banned)}" in a name', name)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and _QUESTION_NAME.match(name):
            result = "bool" if node.returns is None else ast.unparse(node.returns)
            is_setter = any("setter" in ast.unparse(one) for one in node.decorator_list)
            if "bool" not in result and "TypeGuard" not in result and not is_setter:
                yield Finding(path, node.lineno, f"a question as a name, but the result is {result}", name)


def _defined_name(node: ast.AST) -> str:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return node.name
    if isinstance(node, ast.arg):
        return node.arg
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        return node.id
    if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
        return node.attr
    return ""


def _of_comments(path: Path, text: str) -> Iterator[Finding]:
    block: list[str] = []
    first = last = 0
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type != tokenize.COMMENT or token.string.startswith(("#:", "#!")):
            continue
        line = token.start[0]
        is_trailing = bool(token.line[: token.start[1]].strip())  # behind code: a text of its own
        if block and (line != last + 1 or is_trailing):
            yield from _of_prose(path, first, "\n".join(block))
            block = []
        if not block:
            first = line
        block.append(token.string.lstrip("#").strip())
        last = -1 if is_trailing else line
    if block:
        yield from _of_prose(path, first, "\n".join(block))


def _of_page(path: Path, text: str) -> Iterator[Finding]:
    prose = re.sub(r"^```.*?^```", lambda block: "\n" * block[0].count("\n"), text, flags=re.DOTALL | re.MULTILINE)
    prose = re.sub(r"<!--.*?-->", lambda note: "\n" * note[0].count("\n"), prose, flags=re.DOTALL)
    if _PAGES_WITH_READERS.search(path.as_posix()):
        first = next(
            (one for one in re.split(r"\n\s*\n", prose) if one.strip() and not one.strip().startswith("#")), ""
        )
        if not re.match(r"\s*(?:This page|These pages)\b", first):
            yield Finding(path, 1, "the first paragraph does not name the readers (This page is for …)", _short(first))
    yield from _of_prose(path, 1, prose)


def _of_prose(path: Path, line: int, text: str) -> Iterator[Finding]:
    plain = _CODE.sub("CODE", text)
    yield from _banned(path, line, plain)
    start = 0
    for end in [*_SENTENCE_END.finditer(plain), None]:
        sentence = plain[start : end.start() if end else len(plain)]
        if "|" not in sentence and len(re.findall(r"[A-Za-z][\w'-]*", sentence)) > SENTENCE_WORDS_MAX:
            yield Finding(path, line + plain.count("\n", 0, start), "sentence of over 40 words", _short(sentence))
        start = end.end() if end else len(plain)


def _banned(path: Path, line: int, text: str) -> Iterator[Finding]:
    for pattern, instead in _BANNED:
        for match in pattern.finditer(text):
            around = text[max(0, match.start() - 30) : match.end() + 30]
            found = f'"{match[0]}" (better: {instead})'
            yield Finding(path, line + text.count("\n", 0, match.start()), found, _short(around))


def _short(text: str) -> str:
    return re.sub(r"\s+", " ", text).strip()[:100]


def files(places: Iterable[Path]) -> list[Path]:
    """Return the modules and pages under the places."""
    found = []
    for place in places:
        if place.is_file():
            found.append(place)
        else:
            found += [path for path in place.rglob("*") if path.suffix in (".py", ".md")]
    return sorted(path for path in found if ".venv" not in path.parts and "build" not in path.parts)


def default_places() -> list[Path]:
    return [ROOT / name for name in (*PLACES, *PAGES)]


if __name__ == "__main__":
    places = [Path(one).resolve() for one in sys.argv[1:]] or default_places()
    count = 0
    for one in files(places):
        for finding in findings_of(one):
            count += 1
            print(finding)
    print(f"{count} findings")
    sys.exit(1 if count else 0)
