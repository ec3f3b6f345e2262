"""The principal of a client certificate: its subject as Java writes it, and `ssl.principal.mapping.rules`.

    RULE:^CN=(.*?),OU=.*$/$1/L,DEFAULT

The first rule whose pattern matches the whole name is used. `$1` in its replacement is the group of the pattern, and L
or U converts the result to lower or upper case. DEFAULT keeps the name. A certificate that no rule matches is refused.

A client chooses its subject, as far as its certificate authority lets it. RE2 matches a subject in a time that grows
with its length. A pattern with lookaround, which RE2 does not have, is matched by Python, and only with short subjects:
the usual `CN=(.*?),OU=(.*?),O=(.*?)…` would take hours with a subject of 3,000 characters.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from tailrace.model.patterns import Pattern, UnusablePattern, compile_pattern
from tailrace.model.topic_config import InvalidConfig

# The types with names in RFC 2253, by their object identifiers. Others are written as numbers.
_NAMES: Final = {
    "2.5.4.3": "CN",
    "2.5.4.7": "L",
    "2.5.4.8": "ST",
    "2.5.4.10": "O",
    "2.5.4.11": "OU",
    "2.5.4.6": "C",
    "2.5.4.9": "STREET",
    "0.9.2342.19200300.100.1.25": "DC",
    "0.9.2342.19200300.100.1.1": "UID",
}
_ENCODINGS: Final = {0x0C: "utf-8", 0x13: "ascii", 0x14: "latin-1", 0x16: "ascii", 0x1E: "utf-16-be", 0x1C: "utf-32-be"}
_RULE: Final = re.compile(r"\s*(?:(DEFAULT)|RULE:((?:\\.|[^\\/])*)/((?:\\.|[^\\/])*)/([LU]?))\s*(?:,|$)")
SUBJECT_CHARS_MAX: Final = 16_384
BACKTRACKED_CHARS_MAX: Final = 512  # of a subject that Python matches: less than a second
_IDENTIFIER_BYTES_MAX: Final = 64
_REFERENCE: Final = re.compile(r"\$(\d)")


class NoSuchName(OSError):
    """A certificate cannot be read, or no rule matches its subject."""


class _Rule(NamedTuple):
    pattern: re.Pattern[str]
    linear: Pattern | None  # the same pattern for RE2, if it has its syntax
    replacement: str
    case: str

    def groups(self, subject: str) -> Sequence[str | None] | None:
        """Return the whole match and its groups, or None. Raise NoSuchName for a subject that is too long."""
        if self.linear is not None:
            return self.linear.groups(subject)
        if len(subject) > BACKTRACKED_CHARS_MAX:
            raise NoSuchName(
                f"the subject has {len(subject)} characters; the limit is {BACKTRACKED_CHARS_MAX} for a rule that RE2"
                f" cannot match: {self.pattern.pattern!r}"
            )
        found = self.pattern.fullmatch(subject)
        return None if found is None else (found[0], *found.groups())


class PrincipalRules:
    def __init__(self, text: str = "DEFAULT") -> None:
        self._rules: list[_Rule | None] = []  # None: DEFAULT
        position = 0
        while position < len(text):
            found = _RULE.match(text, position)
            if found is None:
                raise InvalidConfig(
                    f"ssl.principal.mapping.rules: {text[position:]!r} is not a rule; use DEFAULT or "
                    "RULE:pattern/replacement/[LU]"
                )
            position = found.end()
            if found[1] is not None:
                self._rules.append(None)
                continue
            try:
                pattern = re.compile(found[2])
            except re.error as error:
                raise InvalidConfig(
                    f"ssl.principal.mapping.rules: {found[2]!r} is not a valid pattern: {error}"
                ) from error
            missing = [one for one in _REFERENCE.findall(found[3]) if int(one) > pattern.groups]
            if missing:
                raise InvalidConfig(
                    f"ssl.principal.mapping.rules: {found[3]!r} names group ${missing[0]}, but the pattern"
                    f" {found[2]!r} has {pattern.groups} group(s)"
                )
            self._rules.append(_Rule(pattern, _linear(found[2]), found[3], found[4]))

    def name_of(self, certificate: bytes) -> str:
        """Return the principal's name for a certificate, or raise NoSuchName."""
        return self.apply(subject_of(certificate))

    def apply(self, subject: str) -> str:
        for rule in self._rules:
            if rule is None:
                return subject
            groups = rule.groups(subject)
            if groups is not None:
                return _replaced(rule, groups)
        raise NoSuchName(f"no rule of ssl.principal.mapping.rules matches {subject}")


def _linear(pattern: str) -> Pattern | None:
    try:
        return compile_pattern(pattern)
    except UnusablePattern:
        return None


def _replaced(rule: _Rule, groups: Sequence[str | None]) -> str:
    name = _REFERENCE.sub(lambda asked: groups[int(asked[1])] or "", rule.replacement)
    return {"L": name.lower(), "U": name.upper(), "": name}[rule.case]


def subject_of(certificate: bytes) -> str:
    """Return the subject of a certificate (DER), the last part first, as in RFC 2253."""
    try:
        signed = next(_elements(next(_elements(certificate))[1]))[1]
        fields = [element for element in _elements(signed) if element[0] != 0xA0]  # the optional version
        subject = fields[4][1]  # after serial number, algorithm, issuer, validity
        parts = [_relative_name(value) for _, value in _elements(subject)]
    except (ValueError, IndexError, StopIteration) as error:
        raise NoSuchName(f"a client certificate cannot be decoded: {error}") from error
    name = ",".join(reversed(parts))
    if len(name) > SUBJECT_CHARS_MAX:
        raise NoSuchName(
            f"the subject of a client certificate has {len(name)} characters; the limit is {SUBJECT_CHARS_MAX}"
        )
    return name


def _relative_name(values: bytes) -> str:
    pairs = []
    for _, pair in _elements(values):
        (_, kind), (tag, value) = _elements(pair)
        number = _object_identifier(kind)
        name = _NAMES.get(number)
        if name is None or tag not in _ENCODINGS:
            pairs.append(f"{name or number}=#{bytes([tag, *_length(len(value)), *value]).hex()}")
        else:
            pairs.append(f"{name}={_escaped(value.decode(_ENCODINGS[tag]))}")
    return "+".join(pairs)


def _escaped(text: str) -> str:
    """Escape text as Java does, which is a little more than RFC 2253 requires."""
    inner = text.strip(" ")
    before = len(text) - len(text.lstrip(" ")) if inner else len(text)
    behind = len(text) - before - len(inner)
    return "\\ " * before + re.sub(r'([,=+<>#;"\\])', r"\\\1", inner) + "\\ " * behind


def _elements(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the tag and the content of each encoded element."""
    position = 0
    while position < len(data):
        tag, size = data[position], data[position + 1]
        position += 2
        if size & 0x80:
            count = size & 0x7F
            if not 0 < count <= 4:
                raise ValueError("an element has an indefinite length")
            size = int.from_bytes(data[position : position + count], "big")
            position += count
        if position + size > len(data):
            raise ValueError("an element is incomplete")
        yield tag, data[position : position + size]
        position += size


def _length(size: int) -> Sequence[int]:
    if size < 0x80:
        return (size,)
    raw = size.to_bytes((size.bit_length() + 7) // 8, "big")
    return (0x80 | len(raw), *raw)


def _object_identifier(data: bytes) -> str:
    if len(data) > _IDENTIFIER_BYTES_MAX:
        raise ValueError("an object identifier is too long")
    numbers = [min(data[0] // 40, 2)]
    numbers.append(data[0] - 40 * numbers[0])
    value = 0
    for byte in data[1:]:
        value = value << 7 | byte & 0x7F
        if not byte & 0x80:
            numbers.append(value)
            value = 0
    return ".".join(map(str, numbers))
