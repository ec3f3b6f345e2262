"""Which names topics may have.

One to 249 of the characters a-z, A-Z, 0-9, `.`, `_` and `-`, and neither `.` nor `..`, since a name is part of a
folder's. Two names that differ only in `.` and `_` collide: metrics cannot tell them apart.
"""

from __future__ import annotations

import re
from typing import Final

from tailrace.model.java.java_hash import java_length

MAX_LENGTH: Final = 249
_LEGAL = re.compile(r"[a-zA-Z0-9._-]+")

CLUSTER_METADATA: Final = "__cluster_metadata"


def name_problem(name: str) -> str | None:
    """What is wrong with a topic's name; None if nothing is."""
    if not name:
        return "a topic's name must not be empty"
    if name in (".", ".."):
        return f"a topic must not be called '{name}'"
    if java_length(name) > MAX_LENGTH:
        return f"a topic's name must have no more than {MAX_LENGTH} characters: '{name}'"
    if not _LEGAL.fullmatch(name):
        return f"a topic's name may have letters, digits, '.', '_' and '-' only: '{name}'"
    return None


def may_collide(name: str) -> bool:
    return "." in name or "_" in name


def unified(name: str) -> str:
    """The same for all names that collide."""
    return name.replace(".", "_")
