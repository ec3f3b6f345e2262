"""The text of `sasl.jaas.config`: one login module, and its options.

org.apache.kafka.common.security.plain.PlainLoginModule required username="a" password="x" user_b="y";
"""

from __future__ import annotations

import re
from typing import NamedTuple

_JAAS = re.compile(r"\s*(?P<module>[\w.$]+)\s+required\b(?P<options>.*?);?\s*", re.DOTALL)
_OPTION = re.compile(r"([\w.@+-]+)\s*=\s*(?:\"((?:[^\"\\]|\\.)*)\"|'((?:[^'\\]|\\.)*)'|(\S+?))(?=\s|;|$)")


class LoginModule(NamedTuple):
    name: str
    options: dict[str, str]

    def is_a(self, short_name: str) -> bool:
        return self.name.rpartition(".")[2] == short_name


def parse_jaas(text: str) -> LoginModule | None:
    """Return the login module of the text, or None if the text does not define one."""
    found = _JAAS.fullmatch(text)
    if found is None:
        return None
    options = {
        name: re.sub(r"\\(.)", r"\1", double or single) or bare
        for name, double, single, bare in _OPTION.findall(found["options"])
    }
    return LoginModule(found["module"], options)
