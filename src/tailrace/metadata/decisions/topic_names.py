"""Valid names of topics.

A name has 1 to 249 of the characters a-z, A-Z, 0-9, `.`, `_` and `-`, and is neither `.` nor `..`, because it is part
of a folder's name. Two names that differ only in `.` and `_` collide, because names of metrics do not distinguish them.
"""

from __future__ import annotations

import re
from typing import Final

from tailrace.model.java.java_hash import java_length

MAX_LENGTH: Final = 249
_LEGAL = re.compile(r"[a-zA-Z0-9._-]+")

CLUSTER_METADATA: Final = "__cluster_metadata"


def name_problem(name: str) -> str | None:
    """Return the reason why a topic's name is invalid, or None."""
    if not name:
        return f"a topic's name is empty; it needs 1 to {MAX_LENGTH} characters"
    if name in (".", ".."):
        return f"a topic's name must not be '{name}'"
    if java_length(name) > MAX_LENGTH:
        return f"a topic's name has {java_length(name)} characters, more than {MAX_LENGTH}: '{name}'"
    if not _LEGAL.fullmatch(name):
        return f"a topic's name may contain only a-z, A-Z, 0-9, '.', '_' and '-': '{name}'"
    return None


def may_collide(name: str) -> bool:
    return "." in name or "_" in name


def collision_key(name: str) -> str:
    """Return the key of a name. Names with the same key collide."""
    return name.replace(".", "_")
